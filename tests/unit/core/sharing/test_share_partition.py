"""One share-partition: what is handed out, what is said of it, what is persisted."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.share.batches import StateBatch
from penstock.core.sharing.acknowledging import Acknowledgement, check
from penstock.core.sharing.acquiring import Batch
from penstock.core.sharing.partition import Limits, SharePartition
from penstock.core.sharing.states import AcknowledgeType, RecordState

ACCEPT, RELEASE, REJECT, RENEW, GAP = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
    AcknowledgeType.GAP,
)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
LIMITS = Limits(max_locks=100, delivery_limit=3, lock_ms=1000)
TEN = [Batch(0, 0, 9)]


def share(limits: Limits = LIMITS, *, start: int = 0, batches: tuple[StateBatch, ...] = ()) -> SharePartition:
    return SharePartition(start, batches, limits)


def say(one: SharePartition, member: str, first: int, last: int, *kinds: int, stored: bool = True) -> list[StateBatch]:
    change = one.acknowledge(member, [Acknowledgement(first, last, kinds)], 0)
    one.finish(change, stored=stored)
    one.check()
    return change.batches


def take(one: SharePartition, member: str, batches: list[Batch] = TEN, now_ms: int = 0, **wanted: int) -> list[tuple]:
    out = one.acquire(member, batches, now_ms, **{"max_records": 500, **wanted})
    one.check()
    return [tuple(each) for each in out]


def refused(one: SharePartition, member: str, first: int, last: int, kind: int) -> ErrorCode:
    with pytest.raises(KafkaError) as fault:
        one.acknowledge(member, [Acknowledgement(first, last, [kind])], 0)
    one.check()
    return fault.value.code


def test_accepted_records_are_done_and_the_start_moves():
    one = share()
    assert take(one, "a") == [(0, 9, 1)]
    assert say(one, "a", 0, 9, ACCEPT) == [(0, 9, ACKNOWLEDGED, 1)]
    assert (one.start_offset, one.end_offset, one.next_look(0, 10)) == (10, 10, None)


def test_a_record_that_somebody_has_is_handed_to_nobody_else():
    one = share()
    take(one, "a")
    assert one.next_look(0, 10) is None
    assert take(one, "b") == []


def test_a_released_record_is_handed_out_again_with_its_count():
    one = share()
    take(one, "a")
    assert say(one, "a", 3, 4, RELEASE) == [(3, 4, AVAILABLE, 1)]
    assert one.next_look(0, 10) == 3
    assert take(one, "b", [Batch(3, 0, 9)]) == [(3, 4, 2)]


def test_what_is_not_persisted_has_not_happened():
    one = share()
    take(one, "a")
    say(one, "a", 0, 9, ACCEPT, stored=False)
    assert (one.start_offset, take(one, "b")) == (0, [])
    assert say(one, "a", 0, 9, ACCEPT) == [(0, 9, ACKNOWLEDGED, 1)]


def test_while_it_is_being_persisted_nobody_can_say_anything_else():
    one = share()
    take(one, "a")
    change = one.acknowledge("a", [Acknowledgement(0, 4, [ACCEPT])], 0)
    assert refused(one, "a", 4, 4, RELEASE) is ErrorCode.INVALID_RECORD_STATE
    assert one.expire(10_000).batches == [(5, 9, AVAILABLE, 1)], "the lock of what is on its way does not end"
    one.finish(change, stored=True)
    assert one.start_offset == 5


def test_records_that_were_handed_out_too_often_are_archived():
    one = share()
    for _ in range(2):
        take(one, "a")
        assert say(one, "a", 0, 9, RELEASE)[0].delivery_state == AVAILABLE
    take(one, "a")
    assert say(one, "a", 0, 9, RELEASE) == [(0, 9, ARCHIVED, 3)]
    assert one.start_offset == 10


def test_a_rejected_record_is_archived_and_named_as_given_up():
    one = share()
    take(one, "a")
    change = one.acknowledge("a", [Acknowledgement(0, 2, [ACCEPT, REJECT, GAP])], 0)
    assert change.batches == [(0, 0, ACKNOWLEDGED, 1), (1, 2, ARCHIVED, 1)]
    assert change.dead == [(1, 1, 1, "rejected")]


def test_a_lock_ends_when_its_time_is_over_and_no_sooner():
    one = share()
    take(one, "a", now_ms=5)
    assert one.next_deadline_ms() == 1005
    assert one.expire(1004).batches == []
    assert one.expire(1005).batches == [(0, 9, AVAILABLE, 1)]
    assert take(one, "b", now_ms=1005) == [(0, 9, 2)]
    assert refused(one, "a", 0, 0, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_a_lock_that_ends_for_the_last_time_archives():
    one = share(Limits(max_locks=100, delivery_limit=1, lock_ms=1000))
    take(one, "a")
    back = one.expire(1000)
    assert (back.batches, back.change.batches) == ([], [(0, 9, ARCHIVED, 1)])
    one.finish(back.change, stored=True)
    assert one.start_offset == 10


def test_a_renewed_lock_lives_on():
    one = share()
    take(one, "a")
    assert one.acknowledge("a", [Acknowledgement(0, 4, [RENEW])], 900).batches == []
    assert one.expire(1000).batches == [(5, 9, AVAILABLE, 1)]
    assert one.next_deadline_ms() == 1900


def test_a_group_may_forbid_to_renew():
    one = share(Limits(max_locks=100, delivery_limit=3, lock_ms=1000, renewable=False))
    take(one, "a")
    assert refused(one, "a", 0, 0, RENEW) is ErrorCode.INVALID_RECORD_STATE


def test_what_a_member_had_is_available_when_it_is_gone():
    one = share()
    take(one, "a", [Batch(0, 0, 4)])
    take(one, "b", [Batch(5, 5, 9)])
    assert one.release("a").batches == [(0, 4, AVAILABLE, 1)]
    assert one.next_look(0, 10) == 0
    assert refused(one, "b", 4, 5, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_acknowledgements_are_all_or_nothing():
    one = share()
    take(one, "a")
    mixed = [Acknowledgement(0, 1, [ACCEPT]), Acknowledgement(8, 12, [ACCEPT])]
    with pytest.raises(KafkaError) as fault:
        one.acknowledge("a", mixed, 0)
    assert fault.value.code is ErrorCode.INVALID_REQUEST
    assert say(one, "a", 0, 9, ACCEPT) == [(0, 9, ACKNOWLEDGED, 1)]


def test_what_is_before_the_start_is_passed_over():
    one = share()
    take(one, "a")
    say(one, "a", 0, 4, ACCEPT)
    assert say(one, "a", 2, 6, ACCEPT) == [(5, 6, ACKNOWLEDGED, 1)]
    assert say(one, "a", 0, 4, ACCEPT) == []


def test_offsets_without_a_record_are_never_handed_out():
    one = share()
    assert take(one, "a", [Batch(0, 2, 4), Batch(5, 7, 7, False), Batch(8, 8, 9)]) == [(2, 4, 1), (8, 9, 1)]
    assert say(one, "a", 2, 4, ACCEPT) == [(2, 4, ACKNOWLEDGED, 1)]
    assert one.start_offset == 8


def test_more_is_looked_at_only_while_locks_are_free():
    one = share(Limits(max_locks=10, delivery_limit=3, lock_ms=1000))
    take(one, "a")
    assert one.next_look(0, 50) is None
    say(one, "a", 5, 5, ACCEPT)
    assert one.next_look(0, 50) == 10


def test_whole_batches_are_taken_unless_the_number_is_exact():
    batches = [Batch(0, 0, 9), Batch(10, 10, 19), Batch(20, 20, 29)]
    assert take(share(), "a", batches, max_records=11) == [(0, 19, 1)]
    one = share()
    assert take(one, "a", batches, max_records=11, exact=True) == [(0, 10, 1)]
    assert (one.end_offset, one.next_look(0, 30)) == (11, 11)
    assert take(one, "b", [Batch(11, 10, 19)], max_records=4, exact=True) == [(11, 14, 1)]


def test_ranges_are_parted_between_batches_where_they_are_large_enough():
    batches = [Batch(0, 0, 4), Batch(5, 5, 9), Batch(10, 10, 14)]
    assert take(share(), "a", batches, batch_size=8) == [(0, 9, 1), (10, 14, 1)]


def test_what_was_persisted_comes_back():
    kept = (StateBatch(5, 6, ACKNOWLEDGED, 1), StateBatch(9, 9, AVAILABLE, 2), StateBatch(12, 12, ARCHIVED, 3))
    one = share(start=3, batches=kept)
    one.check()
    assert take(one, "a", [Batch(3, 3, 14)]) == [(3, 4, 1), (7, 8, 1), (9, 9, 3), (10, 11, 1), (13, 14, 1)]


def test_the_front_that_was_done_when_it_was_persisted_is_not_kept():
    one = share(start=0, batches=(StateBatch(0, 4, ACKNOWLEDGED, 1),))
    assert (one.start_offset, one.end_offset, len(one.window)) == (5, 5, 0)


def test_records_that_left_the_log_are_gone_whoever_had_them():
    one = share()
    take(one, "a")
    one.trim(4)
    one.check()
    assert one.start_offset == 4
    assert say(one, "a", 0, 9, ACCEPT) == [(4, 9, ACKNOWLEDGED, 1)]
    one.trim(20)
    assert (one.start_offset, one.end_offset, one.next_look(0, 30)) == (20, 20, 20)


def test_the_log_may_move_past_what_is_being_persisted():
    one = share()
    take(one, "a")
    change = one.acknowledge("a", [Acknowledgement(0, 9, [RELEASE])], 0)
    one.trim(5)
    one.finish(change, stored=True)
    one.check()
    assert take(one, "b", [Batch(5, 0, 9)]) == [(5, 9, 2)]


@pytest.mark.parametrize(
    "batches",
    [
        [(5, 4, [1])],
        [(0, 4, [1]), (4, 6, [1])],
        [(0, 4, [])],
        [(0, 4, [1, 1])],
        [(0, 0, [5])],
        [(0, 0, [-1])],
        [(0, 0, [4])],
    ],
    ids=["backwards", "overlapping", "no type", "too few types", "unknown", "negative", "renewal"],
)
def test_acknowledgements_that_make_no_sense_are_refused(batches):
    with pytest.raises(KafkaError) as fault:
        check([Acknowledgement(*one) for one in batches], renewing=False)
    assert fault.value.code is ErrorCode.INVALID_REQUEST


def test_a_renewing_request_may_renew():
    check([Acknowledgement(0, 1, [4, 1])], renewing=True)


def test_what_members_say_and_what_they_forget_to_say_is_counted():
    one = share()
    take(one, "a")
    say(one, "a", 0, 3, ACCEPT, ACCEPT, RELEASE, REJECT)
    say(one, "a", 4, 5, RENEW)
    assert one.counts.acknowledged == {ACCEPT: 2, RELEASE: 1, REJECT: 1, RENEW: 2, GAP: 0}
    assert one.in_flight == (8, 4), "two are done in front; released, rejected, renewed, untouched"
    one.expire(LIMITS.lock_ms)
    assert one.counts.timed_out == 6


def test_what_is_refused_is_not_counted():
    one = share()
    take(one, "a")
    refused(one, "b", 0, 9, ACCEPT)
    assert one.counts.acknowledged[ACCEPT] == 0
