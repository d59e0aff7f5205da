"""Who leads: votes, pre-votes, epochs, and what is on the disk before anything is said."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.raft.rpc import (
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    Leader,
    Vote,
    VoteAnswer,
)
from penstock.core.raft.settings import Settings
from penstock.core.raft.voters import Replica
from tests.unit.core.raft.raft_bench import Bench, voter


def follower_of(leader_id: int, epoch: int = 3, settings: Settings | None = None) -> Bench:
    bench = Bench(settings=settings)
    bench.ask(BeginEpoch(epoch, leader_id, voter(leader_id).endpoints, voter(1).replica))
    assert (bench.raft.role.name, bench.raft.leader.id, bench.raft.epoch) == ("follower", leader_id, epoch)
    return bench


def fetched(bench: Bench, answer: FetchAnswer | None = None) -> None:
    (send,) = bench.sent(Fetch)
    bench.answer(send, answer or FetchAnswer(Leader(bench.raft.leader.id, bench.raft.epoch)))


def test_a_voter_asks_for_pre_votes_then_for_votes_then_leads():
    bench = Bench()
    bench.tick(2_000)
    asked = bench.sent(Vote)
    assert [(one.peer, one.request.epoch, one.request.pre_vote) for one in asked] == [(2, 0, True), (3, 0, True)]
    bench.answer(asked[0], VoteAnswer(Leader(-1, 0), granted=True))
    asked = bench.sent(Vote)
    assert [(one.peer, one.request.epoch, one.request.pre_vote) for one in asked] == [(2, 1, False), (3, 1, False)]
    bench.answer(asked[1], VoteAnswer(Leader(-1, 1), granted=True))
    assert (bench.raft.role.name, bench.raft.leader.id, bench.raft.epoch) == ("leader", 1, 1)
    assert [one.peer for one in bench.sent(BeginEpoch)] == [2, 3]


def test_the_only_voter_leads_in_its_first_turn():
    bench = Bench(voters=1)
    assert bench.raft.role.name == "leader"
    assert not bench.raft.is_leading
    bench.sync()
    assert bench.raft.is_leading


def test_a_vote_is_on_disk_when_it_is_given():
    bench = Bench()
    assert bench.vote(2, 5).granted
    bench.restart()
    assert not bench.vote(3, 5).granted
    assert bench.vote(2, 5).granted
    assert bench.vote(3, 6).granted


def test_a_pre_vote_is_given_to_many_and_costs_no_epoch():
    bench = Bench()
    assert bench.vote(2, 0, pre_vote=True).granted
    assert bench.vote(3, 0, pre_vote=True).granted
    assert bench.raft.epoch == 0
    assert bench.raft.voted is None


def test_nobody_votes_for_a_log_that_is_behind_its_own():
    bench = Bench()
    bench.lead()
    bench.propose("t")
    bench.raft.resign(bench.clock.now_ms)
    behind = (bench.log.last_epoch, bench.log.end_offset - 1)
    for pre_vote in (True, False):
        assert not bench.vote(2, bench.raft.epoch + 1, pre_vote=pre_vote, end=behind).granted
    newer = (bench.log.last_epoch + 1, 1)
    assert bench.vote(2, bench.raft.epoch + 2, end=newer).granted


def test_a_follower_that_hears_from_its_leader_grants_no_pre_vote():
    bench = follower_of(2)
    assert bench.vote(3, 3, pre_vote=True).granted
    fetched(bench)
    assert not bench.vote(3, 3, pre_vote=True).granted


def test_a_follower_votes_for_nobody_else_in_its_leader_s_epoch():
    bench = follower_of(2)
    answer = bench.vote(3, 3)
    assert (answer.granted, answer.leader.id) == (False, 2)


def test_a_voter_whose_leader_s_node_refuses_it_stands_at_once():
    bench = follower_of(2, settings=Settings(eager=True))
    fetched(bench)
    (send,) = bench.sent(Fetch)
    bench.fail(send, refused=True)
    bench.tick(50)
    assert [one.peer for one in bench.sent(Vote)] == [2, 3]
    assert bench.vote(3, 3, pre_vote=True).granted


def test_without_that_it_waits_for_the_fetch_timeout():
    bench = follower_of(2)
    fetched(bench)
    (send,) = bench.sent(Fetch)
    bench.fail(send, refused=True)
    bench.tick(1_900)
    assert bench.sent(Vote) == []
    bench.tick(200)
    assert [one.peer for one in bench.sent(Vote)] == [2, 3]


def test_a_voter_that_lost_touch_comes_back_to_its_leader_when_the_others_have_not():
    bench = follower_of(2)
    bench.tick(2_100)
    for send in bench.sent(Vote):
        bench.answer(send, VoteAnswer(Leader(2, 3)))
    assert (bench.raft.role.name, bench.raft.leader.id, bench.raft.epoch) == ("follower", 2, 3)


def test_a_denied_pre_vote_is_asked_for_again():
    bench = Bench()
    bench.tick(2_000)
    first, _ = bench.sent(Vote)
    bench.answer(first, VoteAnswer(Leader(-1, 0)))
    bench.tick(20)
    assert bench.sent(Vote, peer=2) == []
    bench.tick(50)
    assert len(bench.sent(Vote, peer=2)) == 1


def test_a_higher_epoch_ends_a_leader_s():
    bench = Bench()
    bench.lead()
    waiting = bench.fetch(2, max_wait_ms=500)
    assert waiting is None
    bench.ask(BeginEpoch(9, 3, voter(3).endpoints, voter(1).replica))
    assert (bench.raft.role.name, bench.raft.leader.id, bench.raft.epoch) == ("follower", 3, 9)


def test_what_waits_at_a_leader_is_told_when_it_leads_no_more():
    bench = Bench()
    bench.lead()
    assert bench.fetch(2, max_wait_ms=500) is None
    token = bench.token
    bench.raft.resign(bench.clock.now_ms)
    assert bench.replies()[token].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_without_a_majority_resigns():
    bench = Bench()
    bench.lead()
    bench.tick(2_000)
    bench.fetch(2)
    bench.tick(1_500)
    assert bench.raft.role.name == "leader"
    bench.tick(1_600)
    assert bench.raft.role.name == "resigned"
    ends = bench.sent(EndEpoch)
    assert [one.peer for one in ends] == [2, 3]
    assert ends[0].request.successors == (voter(2).replica, voter(3).replica)


def test_the_successor_that_a_leader_names_stands_at_once():
    bench = follower_of(2)
    fetched(bench)
    bench.sent(Fetch)
    bench.ask(EndEpoch(3, 2, voter(2).endpoints, (voter(1).replica, voter(3).replica)))
    assert [one.peer for one in bench.sent(Vote)] == [2, 3]


def test_a_leader_that_comes_back_votes_for_nobody_in_its_old_epoch():
    bench = Bench()
    bench.lead()
    epoch = bench.raft.epoch
    bench.restart()
    assert bench.raft.role.name == "resigned"
    assert not bench.vote(2, epoch, end=(epoch, 99)).granted
    assert bench.vote(2, epoch + 1, end=(epoch, 99)).granted


def test_a_follower_that_comes_back_knows_its_leader():
    bench = follower_of(2)
    bench.restart()
    assert (bench.raft.role.name, bench.raft.leader.id, bench.raft.epoch) == ("follower", 2, 3)


def test_a_vote_meant_for_the_directory_before_is_not_given():
    bench = Bench()
    old = Replica(1, b"x" * 16)
    answer = bench.ask(Vote(1, voter(2).replica, old, 0, 0, pre_vote=False))
    assert (answer.granted, answer.error) == (False, ErrorCode.INVALID_VOTER_KEY)


def test_an_old_epoch_is_fenced():
    bench = follower_of(2)
    assert bench.vote(3, 2).error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.ask(BeginEpoch(2, 3, (), voter(1).replica)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.ask(EndEpoch(2, 3, (), ())).error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.ask(Fetch(2, voter(3).replica, 0, 0)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.ask(Fetch(4, voter(3).replica, 0, 0)).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert bench.ask(Fetch(3, voter(3).replica, 0, 0)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "end", "pre_vote"),
    [(2**20 + 1, (0, 0), False), (2**31 - 1, (0, 0), True), (5, (5, 9), False), (5, (6, 9), True)],
    ids=["epoch beyond all elections", "last epoch, pre-vote", "log in the epoch asked for", "log beyond it, pre-vote"],
)
def test_a_vote_that_nobody_could_ask_for_changes_nothing(epoch: int, end: tuple[int, int], pre_vote: bool):
    bench = Bench()
    answer = bench.vote(2, epoch, pre_vote=pre_vote, end=end)
    assert (answer.error, bench.raft.epoch) == (ErrorCode.INVALID_REQUEST, 0)


@pytest.mark.parametrize("epoch", [2**20 + 1, 2**31 - 1])
def test_an_epoch_that_no_elections_lead_to_is_nobody_s(epoch: int):
    """Stored, it would leave voters that soon can never stand again."""
    bench = Bench()
    assert bench.ask(BeginEpoch(epoch, 2, (), voter(1).replica)).error is ErrorCode.INVALID_REQUEST
    assert bench.ask(EndEpoch(epoch, 2, (), ())).error is ErrorCode.INVALID_REQUEST
    bench.tick(2_000)
    asked, _ = bench.sent(Vote)
    bench.answer(asked, VoteAnswer(Leader(3, epoch), granted=False))
    assert bench.raft.epoch <= 1


def test_behind_the_furthest_epoch_that_is_believed_elections_go_on():
    """A limit that were the same for ever would be the last epoch: everybody would refuse the next."""
    bench = Bench()
    for far in (2**20, 2**21):
        assert bench.ask(BeginEpoch(far, 2, (), voter(1).replica)).error is ErrorCode.NONE
        assert bench.raft.epoch == far
    bench.win()
    assert bench.raft.epoch == 2**21 + 1
    assert bench.vote(3, 2**21 + 2, end=(2**21 + 1, 99)).error is ErrorCode.NONE


def test_an_answer_that_comes_too_late_is_dropped():
    bench = Bench()
    bench.tick(2_000)
    late, _ = bench.sent(Vote)
    bench.raft.peers.forget(late.correlation)
    bench.answer(late, VoteAnswer(Leader(-1, 0), granted=True))
    assert bench.raft.role.name == "prospective"


def test_a_voter_that_all_others_refuse_knows_that_there_is_no_majority():
    bench = Bench()
    bench.tick(2_000)
    first, second = bench.sent(Vote)
    bench.fail(first, refused=True)
    assert not bench.raft.is_cut_off, "one may still be there"
    bench.fail(second, refused=True)
    assert bench.raft.is_cut_off
    bench.tick(100)
    again = bench.sent(Vote, peer=3)
    bench.answer(again[0], VoteAnswer(Leader(-1, 0)))
    assert not bench.raft.is_cut_off


def test_a_voter_that_only_hears_nothing_does_not_take_the_others_for_gone():
    bench = Bench()
    bench.tick(2_000)
    for send in bench.sent(Vote):
        bench.fail(send, refused=False)
    assert not bench.raft.is_cut_off


def test_a_leader_whose_followers_are_gone_learns_it_when_it_tells_them_that_it_leads():
    bench = Bench()
    bench.win()
    for send in bench.sent(BeginEpoch):
        bench.fail(send, refused=True)
    assert bench.raft.is_cut_off
    bench.fetch(2)
    assert not bench.raft.is_cut_off


def test_a_leader_may_ask_at_once_whether_its_followers_are_there():
    bench = Bench()
    bench.win()
    for send in bench.sent(BeginEpoch):
        bench.answer(send, EpochAnswer(Leader(1, bench.raft.epoch)))
    bench.tick(1)
    assert bench.sent(BeginEpoch) == [], "they have just heard it"
    bench.raft.ask_around(bench.clock.now_ms)
    asked = bench.sent(BeginEpoch)
    assert [one.peer for one in asked] == [2, 3]
    for send in asked:
        bench.fail(send, refused=True)
    assert bench.raft.is_cut_off
