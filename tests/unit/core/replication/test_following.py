"""A follower's log becomes its leader's: what is cut, what is taken, what readers are told meanwhile."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.log.log import Log
from penstock.core.replication.following import Restart, cut_at, restart_at
from penstock.core.replication.partition import Partition
from penstock.records.builder import build_batch
from penstock.records.record import Record
from tests.unit.core.replication.copies import append, copy, described, leader, partition, place, write


def history(log: Log, *epochs: tuple[int, int]) -> Log:
    """(epoch, records) in order."""
    for epoch, count in epochs:
        write(log, count, epoch=epoch)
    return log


def follower(*epochs: tuple[int, int], epoch: int = 0, node_id: int = 2) -> Partition:
    made = partition(node_id)
    history(made.log, *epochs)
    made.follow(described(1, epoch=epoch, version=epoch))
    return made


def led_in(epoch: int, *epochs: tuple[int, int]) -> Partition:
    made = partition()
    history(made.log, *epochs)
    made.lead(described(1, epoch=epoch, version=epoch))
    return made


def follow_until_level(led: Partition, copied: Partition) -> list[int]:
    """Where it was cut, in order."""
    cuts: list[int] = []
    for _ in range(10):
        fetched = copy(led, copied)
        if fetched.diverging is not None:
            cuts.append(cut_at(copied.log, *fetched.diverging))
            copied.cut(cuts[-1])
        elif not fetched.size_bytes:
            return cuts
    raise AssertionError("it does not come to an end")


def same(one: Partition, other: Partition) -> bool:
    return (one.log.end_offset, one.log.epochs.entries()) == (other.log.end_offset, other.log.epochs.entries())


def test_a_follower_gets_everything_and_then_the_watermark():
    led, copied = leader(isr=(1, 2)), follower()
    append(led, 3)
    assert copy(led, copied).size_bytes > 0
    assert (copied.log.end_offset, copied.high_watermark) == (3, 0)
    copy(led, copied)
    assert copied.high_watermark == led.high_watermark == 3
    assert same(led, copied)


def test_what_the_leader_of_a_newer_epoch_lacks_is_cut():
    led = led_in(2, (0, 3), (2, 1))
    copied = follower((0, 5), epoch=2)
    assert follow_until_level(led, copied) == [3]
    assert same(led, copied)


def test_histories_that_parted_epochs_ago_are_cut_step_by_step():
    """KIP-279: neither knows the other's epochs; each answer takes the follower one step back."""
    led = led_in(7, (0, 2), (3, 2), (6, 2), (7, 1))
    copied = follower((0, 2), (2, 2), (4, 2), (5, 2), epoch=7)
    cuts = follow_until_level(led, copied)
    assert cuts == sorted(cuts, reverse=True) and cuts[-1] == 2
    assert same(led, copied)


def test_logs_of_one_length_that_differ_are_told_apart():
    """KIP-101: the lengths agree, the records do not."""
    led = led_in(2, (0, 2), (2, 1))
    copied = follower((0, 2), (1, 1), epoch=2)
    assert follow_until_level(led, copied) == [2]
    assert same(led, copied)


def test_a_leader_that_has_written_nothing_in_its_epoch_knows_where_it_began():
    """KAFKA-7415: elections without a record in between."""
    led = led_in(9, (0, 3))
    assert led.epoch_end(9) == (9, 3)
    assert led.epoch_end(5) == (0, 3), "no epoch between left a trace: history ends where the last one did"
    assert led.epoch_end(10) == (-1, -1)
    copied = follower((0, 3), (4, 2), epoch=9)
    assert follow_until_level(led, copied) == [3]
    assert same(led, copied)


def test_an_empty_leader_has_its_own_epoch():
    led = led_in(3)
    assert led.epoch_end(3) == (3, 0)
    assert led.epoch_end(1) == (1, 0)


def test_a_follower_whose_log_is_empty_is_never_cut():
    led = led_in(3, (0, 2), (3, 2))
    copied = follower(epoch=3)
    assert follow_until_level(led, copied) == []
    assert same(led, copied)


def test_a_fetch_of_a_history_that_the_leader_has_deleted_is_out_of_range():
    led = led_in(3, (0, 4), (3, 2))
    led.log.delete_before(4)
    with pytest.raises(KafkaError) as refusal:
        copy(led, follower((0, 2), epoch=3))
    assert refusal.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_the_leader_has_dropped_is_begun_anew():
    copied = follower((0, 2), epoch=3)
    assert restart_at(copied.log, leader_start=4, leader_end=9) == Restart(4, whole=True)
    copied.begin_at(4)
    assert (copied.log.start_offset, copied.log.end_offset, copied.high_watermark) == (4, 4, 4)


def test_what_an_uncleanly_elected_leader_lacks_is_cut():
    copied = follower((0, 7), epoch=3)
    assert restart_at(copied.log, leader_start=0, leader_end=5) == Restart(5, whole=False)


def test_one_that_is_in_range_after_all_goes_on():
    copied = follower((0, 7), epoch=3)
    assert restart_at(copied.log, leader_start=2, leader_end=9) == Restart(7, whole=False)


def test_a_cut_takes_the_watermark_with_it():
    copied = follower((0, 7))
    copied.told(6, 0)
    copied.cut(4)
    assert copied.high_watermark == 4
    copied.check()


def test_the_leader_tells_where_the_log_starts():
    copied = follower((0, 7))
    copied.told(7, 3)
    assert copied.log.start_offset == 3
    copied.told(7, 99)
    assert copied.log.start_offset == 3, "what it does not have it cannot drop"


def test_a_watermark_beyond_the_log_is_the_end_of_the_log():
    copied = follower((0, 3))
    assert copied.told(9, 0)
    assert copied.high_watermark == 3
    assert not copied.told(2, 0)


def test_an_empty_follower_takes_a_batch_that_began_before_its_start():
    """Records were deleted up to the middle of a batch: the leader can only send the whole of it."""
    led = partition()
    batch = build_batch([Record.of(b"k", b"v", 0)] * 5)
    led.log.append(batch, 0, len(batch), leader_epoch=0, now_ms=0)
    led.log.delete_before(3)
    led.lead(described(1))
    copied = follower()
    copied.begin_at(3)
    copy(led, copied)
    assert (copied.log.start_offset, copied.log.end_offset) == (3, 5)


def test_a_leader_that_is_named_again_is_no_news():
    copied = follower(epoch=2)
    assert not copied.follow(described(1, epoch=2, version=5))
    assert copied.follow(described(3, epoch=3, version=6))
    assert copied.follow(described(-1, epoch=4, version=7))
    assert copied.leader_id == -1


def test_old_and_new_epochs_are_told_apart_in_every_question():
    led = led_in(5, (0, 2))
    for wrong, code in ((4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        with pytest.raises(KafkaError) as refusal:
            led.check_epoch(wrong)
        assert refusal.value.code is code
        with pytest.raises(KafkaError) as refusal:
            led.meet(place(0, epoch=wrong), 2, 102)
        assert refusal.value.code is code
        with pytest.raises(KafkaError) as refusal:
            led.read(place(0, epoch=wrong), 100, min_one=True, committed_only=False)
        assert refusal.value.code is code


def test_a_new_leader_does_not_tell_the_latest_offset_before_it_knows_it():
    """KIP-207: a client must not see the end of the log go back."""
    led = led_in(5, (0, 4))
    with pytest.raises(KafkaError) as refusal:
        led.latest_for_clients(led.high_watermark)
    assert refusal.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    led.lead(described(1, epoch=5, version=6, isr=(1,)))
    led.cluster.now_ms = 100_000
    led.advance()
    assert led.latest_for_clients(led.high_watermark) == 4


def test_a_follower_serves_consumers_up_to_its_watermark():
    copied = follower((0, 4))
    copied.told(2, 0)
    fetched = copied.read(place(0), 1_000_000, min_one=True, committed_only=False)
    assert fetched.size_bytes > 0 and fetched.high_watermark == 2
    assert copied.read(place(2), 1_000_000, min_one=True, committed_only=False).size_bytes == 0
