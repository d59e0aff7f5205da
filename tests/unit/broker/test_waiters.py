"""Who is woken by an append, and who is left alone."""

from __future__ import annotations

from typing import Any

from penstock.broker.waiters import Waiters
from penstock.core.replication.fetch_session import FetchPartition, FetchSession


class Watched:
    """Enough of a partition."""

    def __init__(self, place: FetchPartition) -> None:
        self.watchers = {place: None}
        self.high_watermark = 10


class Poll:
    def __init__(self) -> None:
        self.grown: list[int] = []

    def grew(self, size_bytes: int) -> None:
        self.grown.append(size_bytes)


def watched() -> tuple[Any, FetchSession]:
    session = FetchSession(7, True, 0)
    place = session.put("t", 0, 0)
    session.dirty.clear()
    return Watched(place), session


def test_an_append_marks_a_session_once_and_then_leaves_it_alone():
    partition, session = watched()
    waiters = Waiters()
    waiters.moved(partition, 100)
    assert list(session.dirty) == list(session.places.values())
    assert partition.watchers == {}


def test_a_fetch_that_waits_is_told_of_every_append():
    partition, session = watched()
    session.waiting = poll = Poll()
    waiters = Waiters()
    waiters.moved(partition, 100)
    waiters.moved(partition, 50)
    assert poll.grown == [100, 50]


def test_whoever_waits_for_an_offset_is_released_when_the_watermark_is_there():
    partition, _ = watched()
    waiters = Waiters()
    released: list[int] = []
    for offset in (11, 12, 13):
        waiters.when_passed(partition, offset, lambda offset=offset: released.append(offset))
    partition.high_watermark = 12
    waiters.moved(partition, 1)
    assert released == [11, 12]


def test_what_is_forgotten_is_kept_no_more_and_not_released():
    """A watermark may stand still for hours: what gave up must not stay until it moves."""
    partition, _ = watched()
    waiters = Waiters()
    released: list[int] = []
    entries = [waiters.when_passed(partition, 11, lambda number=number: released.append(number)) for number in (1, 2)]
    waiters.forget(partition, entries[0])
    waiters.forget(partition, entries[0])
    assert waiters.passing(partition, 11) == 1
    partition.high_watermark = 11
    waiters.moved(partition, 1)
    assert released == [2]
    waiters.forget(partition, entries[1])
    assert waiters.passing(partition, 11) == 0
