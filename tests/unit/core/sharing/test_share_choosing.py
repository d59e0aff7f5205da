"""Which records are handed out next where a group has them chosen: by time, by priority, by key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.sharing.acknowledging import Acknowledgement
from penstock.core.sharing.acquiring import Batch
from penstock.core.sharing.choosing import Rules, chosen, next_ready_ms, next_unknown, tag_of
from penstock.core.sharing.partition import Limits, SharePartition
from penstock.core.sharing.window import Tag
from penstock.records.record import Record

ALL = Rules(delayed=True, by_priority=True, in_key_order=True)


def share(tags: dict[int, Tag], last: int | None = None, *, max_locks: int = 100) -> SharePartition:
    made = SharePartition(0, [], Limits(max_locks=max_locks, delivery_limit=5, lock_ms=1000))
    made.inspect(Batch(0, 0, max(tags) if last is None else last), tags)
    made.check()
    return made


def say(one: SharePartition, offset: int, kind: int) -> None:
    one.finish(one.acknowledge("m", [Acknowledgement(offset, offset, [kind])], 0), stored=True)
    one.check()


def test_the_most_urgent_go_first_and_among_equals_the_oldest():
    one = share({0: Tag(), 1: Tag(priority=5), 2: Tag(priority=-1), 3: Tag(priority=5)})
    assert chosen(one, 0, 3) == [1, 3, 0]
    assert one.take("m", [3, 1], 0) == [(1, 1, 1), (3, 3, 1)]
    assert chosen(one, 0, 9) == [0, 2]


def test_a_delayed_record_waits_for_its_time():
    one = share({0: Tag(ready_ms=500), 1: Tag(), 2: Tag(ready_ms=300)})
    assert (chosen(one, 299, 9), next_ready_ms(one, 299)) == ([1], 300)
    assert (chosen(one, 300, 9), next_ready_ms(one, 300)) == ([1, 2], 500)
    assert (chosen(one, 500, 9), next_ready_ms(one, 500)) == ([0, 1, 2], None)


def test_of_a_key_one_record_is_out_at_a_time_in_the_order_of_the_log():
    one = share({0: Tag(key=b"a"), 1: Tag(key=b"a"), 2: Tag(key=b"b"), 3: Tag(), 4: Tag()})
    assert chosen(one, 0, 9) == [0, 2, 3, 4]
    one.take("m", [0, 2], 0)
    assert chosen(one, 0, 9) == [3, 4]
    say(one, 0, 2)
    assert chosen(one, 0, 9) == [0, 3, 4], "it was released: it comes before those behind it"
    one.take("m", [0], 0)
    say(one, 0, 1)
    assert chosen(one, 0, 9) == [1, 3, 4]


def test_a_delayed_record_holds_back_those_of_its_key():
    one = share({0: Tag(ready_ms=500, key=b"a"), 1: Tag(key=b"a")})
    assert chosen(one, 0, 9) == []
    assert chosen(one, 500, 9) == [0]


def test_offsets_without_a_record_are_set_aside():
    one = share({1: Tag(), 3: Tag()}, last=5)
    assert (one.start_offset, one.end_offset, chosen(one, 0, 9)) == (1, 6, [1, 3])
    one.take("m", [1, 3], 0)
    say(one, 1, 1)
    say(one, 3, 1)
    assert (one.start_offset, len(one.window)) == (6, 0)


def test_more_is_looked_at_while_locks_are_free():
    one = share({0: Tag(), 1: Tag()}, max_locks=2)
    assert next_unknown(one, 10) is None
    one.take("m", [0], 0)
    say(one, 0, 1)
    assert next_unknown(one, 10) == 2
    assert next_unknown(one, 2) is None


def test_what_comes_back_from_another_leader_is_looked_at_again():
    one = SharePartition(4, [], Limits(max_locks=100, delivery_limit=5, lock_ms=1000))
    one.acquire("m", [Batch(4, 4, 9)], 0, max_records=9)
    one.release("m")
    assert next_unknown(one, 20) == 4
    one.inspect(Batch(4, 0, 9), {offset: Tag(priority=offset) for offset in range(10)})
    one.check()
    assert chosen(one, 0, 2) == [9, 8]
    assert next_unknown(one, 20) == 10


@pytest.mark.parametrize(
    ("headers", "tag"),
    [
        ((("deliver-at", b"1700000000000"), ("priority", b"7")), Tag(1_700_000_000_000, 7, b"k")),
        ((("priority", b"-3"),), Tag(0, -3, b"k")),
        ((("priority", b"9" * 15),), Tag(0, 1_000_000, b"k")),
        ((("priority", b"high"), ("deliver-at", b"-5")), Tag(0, 0, b"k")),
        ((("priority", None), ("deliver-at", b"1" * 400)), Tag(0, 0, b"k")),
        ((("priority", b"1"), ("priority", b"2")), Tag(0, 2, b"k")),
    ],
)
def test_headers_say_when_and_how_urgent(headers, tag):
    assert tag_of(Record.of(b"k", b"v", 0, headers), ALL) == tag


def test_what_a_group_has_not_switched_on_is_not_read():
    record = Record.of(b"k", b"v", 0, (("deliver-at", b"5"), ("priority", b"7")))
    assert tag_of(record, Rules(in_key_order=True)) == Tag(0, 0, b"k")
    assert not Rules() and Rules(delayed=True)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.sampled_from([None, b"a", b"b"])), min_size=1))
def test_every_record_is_chosen_in_the_end_once(rows):
    one = share({offset: Tag(*row) for offset, row in enumerate(rows)}, max_locks=1000)
    order: list[int] = []
    for wall_ms in range(4):
        while offsets := chosen(one, wall_ms, 2):
            keys = [rows[offset][2] for offset in offsets if rows[offset][2]]
            assert len(keys) == len(set(keys))
            one.take("m", offsets, 0)
            for offset in offsets:
                say(one, offset, 1)
            order += offsets
    assert sorted(order) == list(range(len(rows)))
    for key in (b"a", b"b"):
        mine = [offset for offset in order if rows[offset][2] == key]
        assert mine == sorted(mine)
