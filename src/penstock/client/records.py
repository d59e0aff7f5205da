"""What is sent and received: plain, typed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Headers = tuple[tuple[str, bytes | None], ...]
HeadersInput = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    """One record of a topic. `timestamp_ms` is -1 where the record has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: K | None
    value: V | None
    headers: Headers = ()
    timestamp_is_append_time: bool = False
    leader_epoch: int | None = None

    def header(self, name: str) -> bytes | None:
        """The last header of that name: Kafka allows several, the last one wins."""
        return next((value for key, value in reversed(self.headers) if key == name), None)


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """Where a sent record landed. `offset` is -1 where acks=0 means that nobody said."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


def headers_to_pairs(headers: HeadersInput | None) -> list[tuple[str, str | bytes | None]] | None:
    """Headers in the library's form; order and repeated names are kept."""
    if headers is None:
        return None
    return list(headers.items() if isinstance(headers, Mapping) else headers)
