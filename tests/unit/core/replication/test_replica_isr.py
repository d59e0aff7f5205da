"""Who is in sync: when a leader asks for a change, and what it believes until it knows the outcome."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.replication.isr import IsrAnswer, IsrChange
from penstock.core.replication.partition import Partition
from tests.unit.core.replication.copies import append, broker, described, fetch, leader, place


def isr(led: Partition) -> tuple[tuple[int, ...], tuple[int, ...]]:
    assert led.leading is not None
    return led.leading.isr, led.leading.maximal_isr


def expanding() -> tuple[Partition, IsrChange]:
    led = leader(isr=(1, 2))
    append(led, 2)
    fetch(led, 2, 2)
    change = fetch(led, 3, 2)
    assert change is not None
    return led, change


def test_a_follower_that_has_all_that_is_committed_joins():
    led, change = expanding()
    assert change == IsrChange(b"t" * 16, 0, 0, 0, ((1, 101), (2, 102), (3, 103)), 0)
    assert isr(led) == ((1, 2), (1, 2, 3))
    assert led.answered(change, IsrAnswer(ErrorCode.NONE, 0, 1, (1, 2, 3))) is None
    assert isr(led) == ((1, 2, 3), (1, 2, 3))


def test_a_leader_from_an_unclean_election_says_that_it_has_recovered():
    """Or the controller refuses every follower that would join, and the partition stays under min.insync.replicas."""
    led = leader(isr=(1,))
    led.lead(described(epoch=1, version=1, isr=(1,))._replace(leader_recovery_state=1))
    change = fetch(led, 2, 0)
    assert change is not None and change.leader_recovery_state == 0


def test_one_that_lacks_committed_records_does_not():
    led = leader(isr=(1, 2))
    append(led, 2)
    led.cluster.now_ms = 50_000
    fetch(led, 2, 2, now_ms=50_000)
    assert led.high_watermark == 2
    assert fetch(led, 3, 1, now_ms=50_000) is None


def test_nor_one_that_lacks_what_earlier_leaders_left():
    """KAFKA-7128: a new leader's watermark lags; who has only what is below it may lack acknowledged records."""
    led = leader(isr=(1, 2), epoch=3, records=5)
    assert led.high_watermark == 0
    assert fetch(led, 3, 4) is None
    assert fetch(led, 3, 5) is not None


def test_nor_one_that_is_fenced_or_stopping():
    led = leader(isr=(1, 2))
    led.cluster.brokers = {**led.cluster.brokers, 3: broker(3, fenced=True)}
    assert fetch(led, 3, 0) is None
    led.cluster.brokers = {**led.cluster.brokers, 3: broker(3)._replace(in_controlled_shutdown=True)}
    assert fetch(led, 3, 0) is None


def test_nor_a_life_of_its_broker_that_the_metadata_do_not_know_yet():
    led = leader(isr=(1, 2))
    assert fetch(led, 3, 0, broker_epoch=999) is None


def test_a_fetch_of_an_earlier_life_is_refused():
    """KIP-903: it was on its way while the broker restarted, and says nothing of what the broker has now."""
    led = leader(isr=(1, 2))
    with pytest.raises(KafkaError) as refusal:
        fetch(led, 3, 0, broker_epoch=50)
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_so_is_one_in_the_session_of_that_life():
    """Its position was found sound before, by the leader of the same epoch."""
    led = leader(isr=(1, 2))
    wanted = place(0, epoch=led.leader_epoch)
    led.meet(wanted, 3, broker(3).epoch)
    led.cluster.brokers = {**led.cluster.brokers, 3: broker(3, epoch=broker(3).epoch + 100)}
    with pytest.raises(KafkaError) as refusal:
        led.meet(wanted, 3, broker(3).epoch)
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_broker_that_is_no_replica_yet_is_told_to_ask_again():
    led = leader()
    led.lead(described(version=1, isr=(1, 2))._replace(replicas=(1, 2)))
    with pytest.raises(KafkaError) as refusal:
        fetch(led, 3, 0)
    assert refusal.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_while_a_change_is_in_flight_no_other_is_asked_for():
    led, _ = expanding()
    assert fetch(led, 3, 2) is None
    led.cluster.now_ms = 60_000
    append(led)
    assert led.laggards() is None


def test_the_watermark_waits_for_one_that_is_about_to_join():
    """KIP-497: the controller may have taken it in already, and may elect it."""
    led, _ = expanding()
    append(led, 2)
    led.cluster.now_ms = 90_000
    fetch(led, 2, 4, now_ms=90_000)
    assert led.high_watermark == 2


def test_a_change_that_was_surely_not_made_is_forgotten():
    for error in (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA):
        led, change = expanding()
        assert led.answered(change, IsrAnswer(error)) is None
        assert isr(led) == ((1, 2), (1, 2))
        assert fetch(led, 3, 2) is not None, "it may be asked for again"


def test_a_change_of_unknown_outcome_stays_until_the_metadata_tell():
    for error in (ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_ID):
        led, change = expanding()
        assert led.answered(change, IsrAnswer(error)) is None
        assert isr(led) == ((1, 2), (1, 2, 3))
        led.lead(described(version=4, isr=(1, 2)))
        assert isr(led) == ((1, 2), (1, 2))


def test_a_request_without_an_answer_is_sent_again():
    led, change = expanding()
    assert led.answered(change, IsrAnswer(ErrorCode.REQUEST_TIMED_OUT)) == change
    assert led.answered(change, IsrAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)) == change


def test_an_answer_that_the_metadata_have_overtaken_changes_nothing():
    led, change = expanding()
    led.lead(described(version=7, isr=(1, 2)))
    led.answered(change, IsrAnswer(ErrorCode.NONE, 0, 1, (1, 2, 3)))
    assert isr(led) == ((1, 2), (1, 2))


def test_metadata_older_than_an_answer_change_nothing():
    led, change = expanding()
    led.answered(change, IsrAnswer(ErrorCode.NONE, 0, 5, (1, 2, 3)))
    led.lead(described(version=4, isr=(1, 2)))
    assert isr(led)[0] == (1, 2, 3)


def test_an_answer_of_another_epoch_is_not_believed():
    led, change = expanding()
    led.answered(change, IsrAnswer(ErrorCode.NONE, 9, 9, (1, 2, 3)))
    assert isr(led) == ((1, 2), (1, 2, 3))


def test_while_a_shrink_is_in_flight_the_watermark_waits_for_those_who_leave():
    led = leader()
    append(led, 2)
    fetch(led, 2, 2)
    led.cluster.now_ms = 60_000
    change = led.laggards()
    assert change is not None and change.members == (1, 2)
    assert isr(led) == ((1, 2, 3), (1, 2, 3))
    assert led.high_watermark == 0


def test_a_member_that_has_not_fetched_from_this_leader_goes_without_its_epoch():
    led = leader()
    append(led, 1)
    fetch(led, 2, 1)
    led.cluster.now_ms = 5_000
    fetch(led, 2, 1, now_ms=5_000)
    assert led.laggards() is None, "members have the time of a lag from the beginning of the epoch"
    led.cluster.now_ms = 12_000
    change = led.laggards()
    assert change is not None and change.isr == ((1, 101), (2, 102))


def test_one_that_always_comes_a_little_late_is_in_sync():
    """A busy leader is ahead at every fetch: what counts is what it had at the fetch before."""
    led = leader(isr=(1, 2))
    for round_ in range(1, 30):
        append(led, 1)
        fetch(led, 2, round_ - 1, now_ms=round_ * 1_000)
    led.cluster.now_ms = 29_000
    assert led.laggards() is None


def test_one_that_waits_at_the_end_counts_as_caught_up_until_something_comes():
    led = leader(isr=(1, 2))
    fetch(led, 2, 0, now_ms=0)
    replica = led.leading.replicas[2] if led.leading else None
    assert replica is not None
    append(led, 1)
    replica.left_behind(59_500)
    led.cluster.now_ms = 60_000
    assert led.laggards() is None
    led.cluster.now_ms = 75_000
    assert led.laggards() is not None


def test_new_metadata_of_the_same_epoch_keep_what_is_known_of_followers():
    led = leader()
    append(led, 2)
    fetch(led, 2, 2)
    led.lead(described(version=1, isr=(1, 2)))
    assert led.advance(), "the one that left is no longer waited for"
    assert led.high_watermark == 2


def test_a_replica_added_by_a_reassignment_starts_as_a_stranger():
    led = leader(isr=(1, 2))
    led.lead(described(version=1, isr=(1, 2))._replace(replicas=(1, 2)))
    append(led, 1)
    fetch(led, 2, 1)
    assert led.high_watermark == 1
    led.lead(described(version=2, isr=(1, 2)))
    change = fetch(led, 3, 1)
    assert change is not None and change.partition_epoch == 2


def test_one_that_waits_at_the_end_joins_once_what_kept_it_out_is_over():
    """It fetched while it was fenced, and does not ask again before there is something to fetch. With too few in sync
    nothing is written: each would wait for the other."""
    led = leader(isr=(1, 2), min_insync_replicas=2)
    led.cluster.brokers = {**led.cluster.brokers, 3: broker(3, fenced=True)}
    assert fetch(led, 3, 0) is None
    assert led.joiner() is None
    led.cluster.brokers = {**led.cluster.brokers, 3: broker(3)}
    change = led.joiner()
    assert change is not None and change.members == (1, 2, 3)
    assert led.joiner() is None, "one at a time"
    led.answered(change, IsrAnswer(ErrorCode.NONE, 0, 1, (1, 2, 3)))
    assert led.joiner() is None


def test_one_that_has_not_fetched_in_this_epoch_does_not_join():
    led = leader(isr=(1, 2))
    assert led.joiner() is None
