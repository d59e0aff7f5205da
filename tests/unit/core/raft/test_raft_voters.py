"""Voters come and go: one change at a time, known from the moment it is in a log, undone when it is cut."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.core.raft.describe import describe
from penstock.core.raft.leader import OBSERVER_SESSION_MS
from penstock.core.raft.rpc import (
    AddVoter,
    BeginEpoch,
    ChangeAnswer,
    EndEpoch,
    Fetch,
    FetchAnswer,
    Leader,
    Received,
    RemoveVoter,
    UpdateVoter,
)
from penstock.core.raft.settings import Settings
from penstock.core.raft.voters import Replica, VoterEndpoint
from tests.unit.core.raft.raft_bench import Bench, voter


def leading() -> Bench:
    bench = Bench()
    bench.lead()
    bench.fetch(4, replica=voter(4).replica)
    return bench


def ids(bench: Bench) -> list[int]:
    return [one.id for one in bench.raft.history.voters]


def observers(bench: Bench) -> list[int]:
    answer = describe(bench.raft, bench.clock.now_ms, bench.clock.now_ms)
    return [one.replica_id for one in answer.topics[0].partitions[0].observers]


def commit(bench: Bench) -> None:
    bench.sync()
    for one in bench.raft.others:
        bench.fetch(one.id)


def test_an_observer_that_has_caught_up_becomes_a_voter_once_that_is_committed():
    bench = leading()
    assert bench.ask(AddVoter(voter(4), 1_000)) is None
    token = bench.token
    assert ids(bench) == [1, 2, 3, 4]
    assert bench.raft.majority == 3
    bench.sync()
    bench.fetch(2)
    assert bench.replies() == {}
    bench.fetch(3)
    assert bench.raft.high_watermark == bench.log.end_offset
    assert token < bench.token
    assert bench.raft.history.find(4) == voter(4)


def test_a_change_is_answered_when_it_is_committed():
    bench = leading()
    assert bench.ask(RemoveVoter(voter(3).replica)) is None
    token = bench.token
    bench.sync()
    bench.token += 1
    replica, at = voter(2).replica, bench.log.end_offset
    bench.raft.step(Received(bench.token, Fetch(bench.raft.epoch, replica, at, bench.raft.epoch)), bench.clock.now_ms)
    assert bench.replies()[token].error is ErrorCode.NONE
    assert ids(bench) == [1, 2]


def test_a_change_that_is_not_committed_in_time_is_told_so():
    bench = leading()
    assert bench.ask(AddVoter(voter(4), 1_000)) is None
    token = bench.token
    bench.tick(1_000)
    assert bench.replies()[token].error is ErrorCode.REQUEST_TIMED_OUT


def test_one_change_at_a_time():
    bench = leading()
    bench.ask(RemoveVoter(voter(3).replica))
    assert bench.ask(RemoveVoter(voter(2).replica)).error is ErrorCode.REQUEST_TIMED_OUT
    commit(bench)
    assert bench.ask(RemoveVoter(voter(2).replica)) is None


def test_no_change_before_the_epoch_has_an_entry_committed():
    bench = Bench()
    bench.win()
    assert bench.ask(RemoveVoter(voter(3).replica)).error is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (AddVoter(voter(2), 1_000), ErrorCode.DUPLICATE_VOTER),
        (AddVoter(voter(2)._replace(directory_id=b"x" * 16), 1_000), ErrorCode.DUPLICATE_VOTER),
        (AddVoter(voter(9), 1_000), ErrorCode.REQUEST_TIMED_OUT),
        (AddVoter(voter(4)._replace(directory_id=bytes(16)), 1_000), ErrorCode.INVALID_REQUEST),
        (AddVoter(voter(4)._replace(endpoints=()), 1_000), ErrorCode.INVALID_REQUEST),
        (RemoveVoter(voter(9).replica), ErrorCode.VOTER_NOT_FOUND),
        (RemoveVoter(Replica(2, b"x" * 16)), ErrorCode.VOTER_NOT_FOUND),
        (UpdateVoter(1, voter(9)), ErrorCode.VOTER_NOT_FOUND),
        (UpdateVoter(1, voter(2)._replace(kraft_version_min=5, kraft_version_max=5)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(request_, error):
    assert leading().ask(request_).error is error


def test_voters_of_the_configuration_do_not_change():
    bench = Bench(dynamic=False)
    bench.lead()
    assert bench.raft.history.kraft_version == 0
    assert bench.ask(RemoveVoter(Replica(3, bytes(16)))).error is ErrorCode.UNSUPPORTED_VERSION


def test_the_last_voter_stays():
    bench = Bench(voters=1)
    bench.sync()
    assert bench.ask(RemoveVoter(voter(1).replica)).error is ErrorCode.VOTER_NOT_FOUND


def test_a_leader_that_removes_itself_leads_until_that_is_committed():
    bench = leading()
    bench.ask(RemoveVoter(voter(1).replica))
    assert (bench.raft.role.name, ids(bench)) == ("leader", [2, 3])
    bench.sync()
    bench.fetch(2)
    assert bench.raft.role.name == "leader"
    bench.fetch(3)
    assert bench.raft.role.name == "resigned"
    assert [one.peer for one in bench.sent(EndEpoch)] == [2, 3]


def test_a_change_that_is_cut_from_the_log_is_undone():
    bench = leading()
    end, epoch = bench.log.end_offset, bench.raft.epoch
    bench.ask(AddVoter(voter(4), 1_000))
    bench.sync()
    bench.ask(BeginEpoch(epoch + 1, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, epoch + 1), diverging=(epoch, end)))
    assert ids(bench) == [1, 2, 3]


def test_a_voter_that_listens_elsewhere_now_tells_the_leader():
    bench = Bench()
    bench.ask(BeginEpoch(4, 2, voter(2).endpoints, voter(1).replica))
    bench.raft.me = voter(1)._replace(endpoints=(VoterEndpoint("CONTROLLER", "elsewhere", 1),))
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, 4)))
    (send,) = bench.sent(UpdateVoter)
    assert (send.peer, send.request.voter.endpoints[0].host) == (2, "elsewhere")
    bench.answer(send, ChangeAnswer(Leader(2, 4)))
    bench.tick(100)
    assert bench.sent(UpdateVoter) == []


def test_an_update_of_a_voter_keeps_it_a_voter():
    bench = leading()
    moved = voter(2)._replace(endpoints=(VoterEndpoint("CONTROLLER", "elsewhere", 1),))
    assert bench.ask(UpdateVoter(bench.raft.epoch, moved)) is None
    commit(bench)
    assert bench.raft.history.find(2) == moved


def joiner(*, auto_join: bool) -> Bench:
    """Node 1 with another directory than the voter of that id has."""
    bench = Bench(settings=Settings(eager=False, auto_join=auto_join))
    bench.ask(BeginEpoch(4, 2, voter(2).endpoints, voter(1).replica))
    bench.raft.me = voter(1)._replace(directory_id=b"n" * 16)
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, 4)))
    return bench


def test_a_controller_with_a_new_disk_asks_to_be_voter_in_place_of_its_old_self():
    bench = joiner(auto_join=True)
    (send,) = bench.sent(RemoveVoter)
    assert send.request.replica == voter(1).replica
    assert joiner(auto_join=False).sent(RemoveVoter) == []


def test_an_observer_stands_for_nothing():
    bench = joiner(auto_join=False)
    assert not bench.raft.is_voter
    bench.tick(10_000)
    assert bench.raft.role.name == "unattached"
    assert bench.raft.epoch == 4


def test_an_observer_that_is_gone_is_described_no_more():
    bench = Bench()
    bench.lead()
    bench.fetch(9)
    assert observers(bench) == [9]
    for _ in range(OBSERVER_SESSION_MS // 1_000):
        bench.clock.now_ms += 1_000
        bench.fetch(2)
    bench.fetch(8)
    assert observers(bench) == [8]
