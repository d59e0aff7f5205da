"""The log among the nodes: what is committed, what is cut, and who is given a snapshot."""

from __future__ import annotations

import copy

import pytest

from penstock.base.errors import ErrorCode
from penstock.broker.formatting import METADATA_DIRECTORY
from penstock.broker.metadata_log import MetadataLog
from penstock.core.metadata.image import EMPTY
from penstock.core.raft.rpc import BeginEpoch, Fetch, FetchAnswer, FetchSnapshot, Leader, SnapshotAnswer
from penstock.core.raft.snapshot import SnapshotId, encode_snapshot
from penstock.core.raft.voters import Replica
from penstock.sim.disk import PowerLoss
from tests.sim.raft_world import CONFIG
from tests.unit.core.raft.raft_bench import Bench, voter


def test_committed_is_what_a_majority_has_synced():
    bench = Bench()
    bench.lead()
    before = bench.raft.high_watermark
    bench.propose("t")
    bench.fetch(2)
    assert bench.raft.high_watermark == before, "the leader itself has not synced it"
    bench.sync()
    assert bench.raft.high_watermark == bench.log.end_offset


def test_an_older_epoch_s_entries_are_committed_only_with_one_of_its_own():
    """Raft's figure 8: on a majority, yet a later leader may not have them."""
    bench = Bench()
    bench.win()
    bench.sync()
    end = bench.log.end_offset
    bench.ask(BeginEpoch(5, 2, voter(2).endpoints, voter(1).replica))
    bench.tick(2_100)
    bench.win()
    bench.sync()
    assert bench.log.end_offset > end
    bench.fetch(2, end)
    assert bench.raft.high_watermark == 0
    bench.fetch(2)
    assert bench.raft.high_watermark == bench.log.end_offset


def test_a_follower_fetches_on_only_after_it_has_synced():
    leader, bench = Bench(), Bench()
    leader.lead()
    bench.ask(BeginEpoch(leader.raft.epoch, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    records = leader.log.read(0, 1 << 20)
    bench.answer(send, FetchAnswer(Leader(2, leader.raft.epoch), high_watermark=1, records=records))
    assert bench.log.end_offset == leader.log.end_offset
    assert bench.sent(Fetch) == []
    bench.sync()
    (send,) = bench.sent(Fetch)
    assert (send.request.offset, send.request.last_epoch) == (leader.log.end_offset, leader.raft.epoch)
    assert (send.request.high_watermark, bench.raft.high_watermark) == (1, 1)


@pytest.mark.parametrize(("more", "caught_up"), [(0, True), (1, False)])
def test_a_node_is_caught_up_once_it_has_all_that_a_leader_of_this_epoch_has_committed(more: int, caught_up: bool):
    """What is on the disk, and what a new leader knows at first, may be less than was committed."""
    leader, bench = Bench(), Bench()
    leader.lead()
    epoch, end = leader.raft.epoch, leader.log.end_offset
    bench.ask(BeginEpoch(epoch, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    assert not bench.raft.is_caught_up
    bench.answer(send, FetchAnswer(Leader(2, epoch), high_watermark=0, records=leader.log.read(0, 1 << 20)))
    bench.sync()
    assert not bench.raft.is_caught_up
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, epoch), high_watermark=end + more))
    assert (bench.raft.high_watermark, bench.raft.is_caught_up) == (end, caught_up)
    assert leader.raft.is_caught_up


def test_a_follower_without_room_fetches_the_same_again_a_little_later():
    leader, bench = Bench(), Bench()
    leader.lead()
    bench.ask(BeginEpoch(leader.raft.epoch, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    records = leader.log.read(0, 1 << 20)
    bench.disk.capacity_bytes = bench.disk.used_bytes() + 10
    bench.answer(send, FetchAnswer(Leader(2, leader.raft.epoch), high_watermark=1, records=records))
    assert (bench.log.end_offset, bench.raft.high_watermark) == (0, 0)
    assert bench.sent(Fetch) == []
    bench.disk.unlimited()
    bench.tick(100)
    (send,) = bench.sent(Fetch)
    assert send.request.offset == 0
    bench.answer(send, FetchAnswer(Leader(2, leader.raft.epoch), high_watermark=1, records=records))
    assert bench.log.end_offset == leader.log.end_offset


def test_a_fetch_waits_until_there_is_something_to_bring():
    bench = Bench()
    bench.lead()
    assert bench.fetch(2, max_wait_ms=500, high_watermark=bench.raft.high_watermark) is None
    token = bench.token
    bench.propose("t")
    answer = bench.replies()[token]
    assert len(answer.records) > 0
    bench.sync()
    assert bench.fetch(2, max_wait_ms=500, high_watermark=0).high_watermark == bench.log.end_offset
    assert bench.fetch(2, max_wait_ms=500) is None
    token = bench.token
    bench.tick(500)
    assert bench.replies()[token].records == b""


def test_a_log_that_parted_is_cut_to_where_it_agrees():
    bench = Bench()
    bench.lead()
    end, epoch = bench.log.end_offset, bench.raft.epoch
    bench.propose("never committed")
    bench.sync()
    bench.ask(BeginEpoch(epoch + 1, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    assert (send.request.offset, send.request.last_epoch) == (end + 1, epoch)
    bench.answer(send, FetchAnswer(Leader(2, epoch + 1), diverging=(epoch, end)))
    assert bench.log.end_offset == end
    (send,) = bench.sent(Fetch)
    assert send.request.offset == end


def test_what_is_committed_is_never_cut():
    bench = Bench()
    bench.lead()
    end, epoch = bench.log.end_offset, bench.raft.epoch
    bench.ask(BeginEpoch(epoch + 1, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    with pytest.raises(AssertionError, match="never cut"):
        bench.answer(send, FetchAnswer(Leader(2, epoch + 1), diverging=(epoch, end - 1)))


def test_a_leader_tells_where_a_replica_s_log_parts_from_its_own():
    bench = Bench()
    bench.lead()
    end, epoch = bench.log.end_offset, bench.raft.epoch
    assert bench.fetch(2, end + 5, last_epoch=epoch).diverging == (epoch, end)
    assert bench.fetch(2, end, last_epoch=epoch).diverging is None


def with_snapshot() -> tuple[Bench, SnapshotId]:
    bench = Bench()
    bench.lead()
    for at in range(20):
        bench.propose(f"t{at}")
        bench.sync()
        bench.fetch(2)
    image = EMPTY.__class__(offset=bench.raft.high_watermark - 1, epoch=bench.raft.epoch)
    bench.log.snapshots.writing(image, bench.raft.history.control_records(image.offset))()
    bench.log.prune()
    assert bench.log.start_offset == image.offset + 1
    return bench, SnapshotId(image.offset + 1, image.epoch)


def test_a_replica_from_before_the_log_s_start_is_given_the_snapshot():
    bench, snapshot = with_snapshot()
    assert bench.fetch(3, 0, last_epoch=0).snapshot == snapshot
    assert bench.fetch(3, snapshot.offset, last_epoch=snapshot.epoch).snapshot is None
    assert bench.fetch(3, snapshot.offset, last_epoch=0).snapshot == snapshot, "it may hold what was never committed"


def test_a_snapshot_that_was_left_behind_keeps_nobody_from_going_on():
    """A leader that began with another's snapshot may still have an older one of its own: it says nothing of where
    its log begins."""
    bench, snapshot = with_snapshot()
    left = SnapshotId(snapshot.offset - 5, snapshot.epoch)
    bench.disk.replace(f"{METADATA_DIRECTORY}/{left.file_name}", encode_snapshot((), {}, epoch=left.epoch, now_ms=1))
    bench.log._look()
    assert bench.fetch(3, snapshot.offset, last_epoch=snapshot.epoch).snapshot is None
    assert bench.fetch(3, left.offset, last_epoch=left.epoch).snapshot == snapshot, "what follows it is gone"


def test_a_snapshot_is_served_in_pieces():
    bench, snapshot = with_snapshot()
    whole, size = b"", 1
    while len(whole) < size:
        answer = bench.ask(FetchSnapshot(bench.raft.epoch, voter(3).replica, snapshot, len(whole), 100))
        assert (answer.error, answer.position) == (ErrorCode.NONE, len(whole))
        whole, size = whole + answer.data, answer.size
    assert len(whole) == size
    beyond = FetchSnapshot(bench.raft.epoch, voter(3).replica, snapshot, size, 100)
    assert bench.ask(beyond).error is ErrorCode.POSITION_OUT_OF_RANGE
    unknown = FetchSnapshot(bench.raft.epoch, voter(3).replica, SnapshotId(1, 1), 0, 100)
    assert bench.ask(unknown).error is ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_follower_takes_a_snapshot_and_goes_on_behind_it():
    source, _ = with_snapshot()
    bench, snapshot = Bench(), SnapshotId(40, 2)
    data = encode_snapshot((), {}, source.raft.history.control_records(), epoch=2, now_ms=1)
    bench.ask(BeginEpoch(4, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, 4), snapshot=snapshot))
    while bench.log.end_offset == 0:
        (send,) = bench.sent(FetchSnapshot)
        at = send.request.position
        bench.answer(send, SnapshotAnswer(Leader(2, 4), snapshot, size=len(data), position=at, data=data[at : at + 90]))
    assert (bench.log.start_offset, bench.log.end_offset, bench.raft.high_watermark) == (40, 40, 40)
    assert bench.raft.history.voters == source.raft.history.voters
    bench.sync()
    (send,) = bench.sent(Fetch)
    assert (send.request.offset, send.request.last_epoch) == (40, 2)
    bench.restart()
    assert (bench.log.start_offset, bench.raft.high_watermark, bench.raft.history.kraft_version) == (40, 40, 1)


def test_a_leader_that_began_with_a_snapshot_has_nothing_committed_cut():
    """What its own log held before the snapshot ended before it, who knows where: a replica that has it all would cut
    itself to the end of that epoch."""
    source, _ = with_snapshot()
    bench = Bench()
    bench.lead()
    old = bench.raft.epoch
    snapshot = SnapshotId(40, old + 1)
    data = encode_snapshot((), {}, source.raft.history.control_records(), epoch=snapshot.epoch, now_ms=1)
    bench.ask(BeginEpoch(old + 1, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, old + 1), snapshot=snapshot))
    (send,) = bench.sent(FetchSnapshot)
    bench.answer(send, SnapshotAnswer(Leader(2, old + 1), snapshot, size=len(data), position=0, data=data))
    bench.sync()
    bench.ask(BeginEpoch(old + 3, 3, voter(3).endpoints, voter(1).replica))
    bench.tick(2_100)
    bench.win()
    bench.sync()
    assert bench.log.end_offset == 41
    uncommitted = old + 2
    assert bench.fetch(2, 41, last_epoch=uncommitted).diverging == (uncommitted, 40)


@pytest.mark.parametrize(("epoch", "caught_up"), [(4, True), (2, False)])
def test_a_snapshot_of_this_epoch_is_enough_while_nothing_is_written_behind_it(epoch: int, caught_up: bool):
    """An idle cluster whose leader has just made a snapshot of everything: who comes must not wait for the next entry.
    Of an older epoch it may lack what that epoch committed."""
    source, _ = with_snapshot()
    bench, snapshot = Bench(), SnapshotId(40, epoch)
    data = encode_snapshot((), {}, source.raft.history.control_records(), epoch=epoch, now_ms=1)
    bench.ask(BeginEpoch(4, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, 4), snapshot=snapshot))
    (send,) = bench.sent(FetchSnapshot)
    bench.answer(send, SnapshotAnswer(Leader(2, 4), snapshot, size=len(data), position=0, data=data))
    bench.sync()
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, 4), high_watermark=40))
    assert (bench.raft.high_watermark, bench.raft.is_caught_up) == (40, caught_up)


def test_the_power_may_go_anywhere_while_a_snapshot_takes_the_place_of_the_log():
    """Segments go one after the other: what is missing in between is not damage."""
    source, _ = with_snapshot()
    bench, snapshot = Bench(), SnapshotId(40, 2)
    data = encode_snapshot((), {}, source.raft.history.control_records(), epoch=2, now_ms=1)
    bench.lead()
    for name in ("a", "b", "c"):
        bench.propose(name)
        bench.sync()
        bench.log.log._roll(bench.log.end_offset, 0)
    bench.propose("d")
    bench.sync()
    bench.log.save_recovery_point()
    bench.log.write_snapshot(snapshot, 0, data)
    ends, step, finished = set(), 0, False
    while not finished:
        step += 1
        disk = copy.deepcopy(bench.disk)
        log = MetadataLog(disk, CONFIG, bench.clock)
        disk.power_loss_after(step)
        try:
            log.install_snapshot(snapshot)
            finished = True
        except PowerLoss:
            pass
        disk.crash()
        again = MetadataLog(disk, CONFIG, bench.clock)
        again.begin()
        ends.add(again.end_offset)
    assert ends == {bench.log.end_offset, snapshot.offset}
    assert step > 10


def test_a_snapshot_that_came_damaged_is_fetched_again():
    bench, snapshot = Bench(), SnapshotId(40, 2)
    bench.ask(BeginEpoch(4, 2, voter(2).endpoints, voter(1).replica))
    (send,) = bench.sent(Fetch)
    bench.answer(send, FetchAnswer(Leader(2, 4), snapshot=snapshot))
    (send,) = bench.sent(FetchSnapshot)
    bench.answer(send, SnapshotAnswer(Leader(2, 4), snapshot, size=9, position=0, data=b"not a one"))
    assert (bench.log.end_offset, bench.log.snapshot) == (0, None)
    assert bench.sent(Fetch) == [], "the leader may have no other for a while: it is not asked without end"
    bench.tick(bench.settings.retry_backoff_ms)
    (send,) = bench.sent(Fetch)
    assert send.request.offset == 0


def test_numbers_that_make_no_sense_break_nothing():
    bench, snapshot = with_snapshot()
    far = 2**62
    for offset, last_epoch in ((far, 0), (far, 2**31 - 1), (0, 2**31 - 1), (1, 0)):
        answer = bench.fetch(9, offset, last_epoch=last_epoch, max_bytes=2**31 - 1, max_wait_ms=2**31 - 1)
        assert answer.diverging is not None or answer.snapshot is not None
    for position in (-1, -far, far):
        request = FetchSnapshot(bench.raft.epoch, voter(3).replica, snapshot, position, 2**31 - 1)
        assert bench.ask(request).error is ErrorCode.POSITION_OUT_OF_RANGE
    assert bench.raft.role.name == "leader"


def test_whoever_does_not_say_who_it_is_does_not_wait():
    bench = Bench()
    bench.lead()
    answer = bench.fetch(2, replica=Replica(-1), max_wait_ms=500)
    assert answer.records == b""
    assert Replica(-1) not in bench.raft.role.replicas
