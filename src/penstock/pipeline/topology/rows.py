"""What travels along the edges of a topology."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

Headers = tuple[tuple[str, bytes | None], ...]

_ORIGIN = Struct(">qBIIq")
_EMISSION = Struct(">I")
_TIMER, _TABLE, _STREAM = 0, 1, 2


class Record(NamedTuple):
    """As a topic has it. Times are milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Row(NamedTuple):
    key: Any
    value: Any
    """Of a stream: the value. Of a table: a `Change`."""
    timestamp: int
    headers: Headers = ()
    stream_time: int = 0
    """The largest timestamp that came before or with it, from the same partition to the same node."""
    order: bytes = b""
    """Sorts the rows that meet in a step; a row that another gave rise to begins with that one's."""

    def to(self, value: Any) -> Row:
        return Row(self.key, value, self.timestamp, self.headers, self.stream_time, self.order)

    def keyed(self, key: Any, value: Any) -> Row:
        return Row(key, value, self.timestamp, self.headers, self.stream_time, self.order)

    def at(self, key: Any, value: Any, timestamp: int) -> Row:
        return Row(key, value, timestamp, self.headers, self.stream_time, self.order)


class _Unknown:
    """The old value of a change that nobody has looked up."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


class Change(NamedTuple):
    """A table's value for a key was `old` and is `new`; None: there is none."""

    new: Any
    old: Any = UNKNOWN


class Windowed(NamedTuple):
    """The key of a windowed table. `end` is exclusive for time windows, inclusive for sliding and session windows."""

    key: Any
    start: int
    end: int


def origin_order(stream_time: int, topic: str, partition: int, offset: int, *, table: bool) -> bytes:
    """At equal times a table's rows come before a stream's: a join then finds the value of that time."""
    rank = _TABLE if table else _STREAM
    return _ORIGIN.pack(max(stream_time, 0), rank, crc32(topic.encode()), partition, offset)


def timer_order(at: int, key: bytes) -> bytes:
    """A timer comes before the rows of its time; those of several keys in an order that does not depend on chance."""
    return _ORIGIN.pack(max(at, 0), _TIMER, crc32(key), 0, 0)


def emission_order(order: bytes, index: int) -> bytes:
    return order + _EMISSION.pack(index)
