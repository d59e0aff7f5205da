"""Who leads a partition after a change, who is in sync, who else could lead."""

from __future__ import annotations

import pytest

from penstock.core.controller.elections import RECOVERING, Election, Wish
from tests.unit.core.controller.moves import UNCLEAN, after, cluster, directory, partition

THREE = partition([1, 2, 3])


def test_nothing_wished_is_no_change():
    assert after(cluster(THREE), Wish()) is None


def test_a_smaller_isr_keeps_the_leader_and_its_epoch():
    found = after(cluster(THREE), Wish(isr=[1, 2]))
    assert (found.isr, found.leader, found.leader_epoch, found.partition_epoch) == ((1, 2), 1, 5, 10)


def test_before_3_6_a_smaller_isr_is_a_new_leader_epoch():
    assert after(cluster(THREE, elr=False, level=11), Wish(isr=[1, 2])).leader_epoch == 6
    assert after(cluster(partition([1, 2, 3], [1]), elr=False, level=11), Wish(isr=[1, 2])).leader_epoch == 5


def test_where_the_leader_goes_the_next_replica_in_sync_leads():
    found = after(cluster(partition([1, 3, 2], [1, 2, 3])), Wish(isr=[2, 3]), leaving=1)
    assert (found.leader, found.isr, found.leader_epoch) == (3, (2, 3), 6)


def test_a_replica_that_is_in_sync_but_fenced_does_not_lead():
    found = after(cluster(partition([1, 2, 3]), alive=(1, 3)), Wish(isr=[2, 3]), leaving=1)
    assert found.leader == 3


def test_a_replica_whose_directory_is_gone_does_not_lead():
    lost = partition([1, 2, 3])._replace(directories=(directory(1), b"?" * 16, directory(3)))
    assert after(cluster(lost), Wish(isr=[2, 3]), leaving=1).leader == 3


def test_below_the_minimum_who_leaves_the_isr_stays_eligible():
    first = after(cluster(THREE), Wish(isr=[1, 2]))
    assert first.eligible == ()
    second = after(cluster(first), Wish(isr=[1]))
    assert (second.isr, second.eligible, second.leader) == ((1,), (2,), 1)


def test_the_eligible_are_forgotten_once_the_minimum_is_there_again():
    found = after(cluster(partition([1, 2, 3], [1], eligible=[2])), Wish(isr=[1, 3]))
    assert (found.isr, found.eligible) == ((1, 3), ())


def test_the_last_in_sync_leaves_a_partition_that_knows_who_led_it():
    found = after(cluster(partition([1, 2, 3], [1], eligible=[2]), alive=(3,)), Wish(isr=[]), leaving=1)
    assert (found.isr, found.leader, found.eligible, found.last_known_eligible) == ((), -1, (2, 1), (1,))


def test_an_eligible_replica_leads_when_none_is_in_sync():
    gone = partition([1, 2, 3], [], eligible=[2, 1], last_known_eligible=[1])
    found = after(cluster(gone, alive=(3,)), Wish(), joining=2)
    assert (found.leader, found.isr, found.eligible, found.last_known_eligible) == (2, (2,), (1,), ())
    assert found.leader_recovery_state == 0


def test_a_replica_that_is_not_eligible_waits():
    gone = partition([1, 2, 3], [], eligible=[2, 1], last_known_eligible=[1])
    assert after(cluster(gone, alive=()), Wish(), joining=3) is None


def test_whoever_led_last_leads_where_nobody_is_eligible():
    gone = partition([1, 2, 3], [], last_known_eligible=[1])
    found = after(cluster(gone, alive=(2,)), Wish(), joining=1)
    assert (found.leader, found.isr, found.last_known_eligible) == (1, (1,), ())
    assert found.leader_recovery_state == RECOVERING


def test_whoever_led_last_does_not_lead_while_it_is_away():
    gone = partition([1, 2, 3], [], last_known_eligible=[1])
    assert after(cluster(gone, alive=(2,)), Wish(), joining=3) is None


def test_a_replica_that_lost_its_tail_is_in_sync_and_eligible_no_more():
    found = after(cluster(partition([1, 2, 3], [1], eligible=[2])), Wish(isr=[1], lost=[2]))
    assert (found.isr, found.eligible) == ((1,), ())
    last = after(cluster(partition([1, 2, 3], [1])), Wish(isr=[], lost=[1]), leaving=1)
    assert (last.isr, last.eligible, last.leader, last.last_known_eligible) == ((), (), -1, (1,))


def test_a_leaderless_partition_remembers_who_was_in_sync_last():
    found = after(cluster(partition([1, 2, 3], [2], leader=-1), alive=()), Wish(isr=[], lost=[2]))
    assert (found.isr, found.last_known_eligible) == ((), (2,))


def test_without_elr_the_last_in_sync_stays_in_the_isr_and_does_not_lead():
    found = after(cluster(partition([1, 2], [1]), elr=False, alive=(2,)), Wish(isr=[]), leaving=1)
    assert (found.isr, found.leader, found.eligible, found.leader_epoch) == ((1,), -1, (), 6)
    back = after(cluster(found, elr=False, alive=(2,)), Wish(), joining=1)
    assert (back.isr, back.leader, back.leader_epoch) == ((1,), 1, 7)


def test_what_was_eligible_is_dropped_when_elr_is_off():
    old = partition([1, 2, 3], [1], eligible=[2], last_known_eligible=[3])
    found = after(cluster(old, elr=False), Wish(isr=[1, 3]))
    assert (found.eligible, found.last_known_eligible) == ((), ())


def test_an_unclean_election_takes_whoever_is_alive():
    gone = partition([1, 2, 3], [], eligible=[1], last_known_eligible=[1])
    wish = Wish(election=Election.UNCLEAN)
    found = after(cluster(gone, alive=(3,)), wish, node=UNCLEAN)
    assert (found.leader, found.isr, found.eligible, found.last_known_eligible) == (3, (3,), (), ())
    assert found.leader_recovery_state == RECOVERING
    assert after(cluster(gone, alive=()), wish) is None


def test_a_clean_leader_is_taken_before_an_unclean_one():
    gone = partition([1, 2, 3], [2], leader=-1)
    found = after(cluster(gone, alive=(1, 2)), Wish(election=Election.UNCLEAN))
    assert (found.leader, found.leader_recovery_state) == (2, 0)


@pytest.mark.parametrize(
    ("isr", "leader", "alive", "expected"),
    [
        ([1, 2, 3], 2, (1, 2, 3), 1),
        ([2, 3], 2, (1, 2, 3), None),
        ([1, 2, 3], 2, (2, 3), None),
        ([1, 2, 3], 2, (3,), 3),
        ([1, 2, 3], 1, (1, 2, 3), None),
    ],
)
def test_a_preferred_election_gives_the_first_replica_its_partition_back(isr, leader, alive, expected):
    found = after(cluster(partition([1, 2, 3], isr, leader), alive=alive), Wish(election=Election.PREFERRED))
    assert expected == (None if found is None else found.leader)


def test_a_reassignment_completes_when_the_new_replicas_are_in_sync():
    moving = partition([1, 4, 2, 3], [1, 2, 3], adding=[4], removing=[2, 3])
    early = after(cluster(moving), Wish(isr=[1, 2]))
    assert (early.replicas, early.adding) == ((1, 4, 2, 3), (4,))
    done = after(cluster(moving), Wish(isr=[1, 2, 3, 4]))
    assert (done.replicas, done.isr, done.adding, done.removing) == ((1, 4), (1, 4), (), ())
    assert done.directories == (directory(1), directory(4))
    assert (done.leader, done.leader_epoch) == (1, 6)


def test_a_leader_that_is_moved_away_gives_over_when_the_move_completes():
    moving = partition([4, 2, 1], [1, 2], leader=1, adding=[4], removing=[1])
    done = after(cluster(moving), Wish(isr=[1, 2, 4]))
    assert (done.leader, done.isr, done.replicas, done.leader_epoch) == (4, (2, 4), (4, 2), 6)


def test_a_replica_that_is_moved_away_is_eligible_no_more():
    moving = partition([1, 2, 3], [1], eligible=[3], removing=[2, 3])
    done = after(cluster(moving), Wish())
    assert (done.replicas, done.isr, done.eligible) == ((1,), (1,), ())


def test_a_new_replica_gets_the_directory_of_its_broker():
    found = after(cluster(partition([1, 2])), Wish(replicas=[1, 2, 4], adding=[4]))
    assert (found.directories[2], found.leader_epoch) == (directory(4), 5)


def test_a_replica_s_directory_can_change():
    found = after(cluster(THREE), Wish(directories={2: b"n" * 16}))
    assert (found.directories, found.leader_epoch) == ((directory(1), b"n" * 16, directory(3)), 5)


def test_records_from_before_directories_name_none():
    old = partition([1, 2])._replace(directories=(bytes(16), bytes(16)))
    found = after(cluster(old, elr=False, level=16), Wish(isr=[1]))
    assert found.directories == (bytes(16), bytes(16))


def test_a_leader_has_recovered_when_it_says_so():
    shaky = partition([1, 2, 3], [1], leader_recovery_state=RECOVERING)
    assert after(cluster(shaky), Wish(leader_recovery_state=0)).leader_recovery_state == 0
