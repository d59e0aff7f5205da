"""What a coordinator's handler is given and what it returns: values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple


class Now(NamedTuple):
    """Both clocks at the moment of an event: timeouts count in the first, stored timestamps in the second."""

    ms: int
    wall_ms: int


class CoordinatorRecord(NamedTuple):
    """A key and its value as they stand in the log: int16 type or version, then the body. No value: a tombstone."""

    key: bytes
    value: bytes | None

    @property
    def size_bytes(self) -> int:
        return len(self.key) + len(self.value or b"")


class Producer(NamedTuple):
    """In whose transaction records are written."""

    producer_id: int
    epoch: int
    guard: object = None
    """what the log gave before the transaction was confirmed; opaque here"""


class Deferred:
    """The answer comes later, as a `Completion` of another result."""

    def __repr__(self) -> str:
        return "DEFERRED"


DEFERRED: Final = Deferred()


class Completion(NamedTuple):
    """The answer to an earlier request, or the KafkaError that ends its wait."""

    ticket: int
    response: object


@dataclass(slots=True)
class Result:
    """What one event leads to. A handler builds it; it is not shared afterwards."""

    response: object = None
    """the answer to the event's own request; released once `records` are committed"""
    records: list[CoordinatorRecord] = field(default_factory=list)
    """to be appended together, in this order"""
    completions: list[Completion] = field(default_factory=list)
    """answers to earlier requests that depend on no record; released at once"""
    then: object = None
    """handed back to `Shard.settled` when the records are committed or their append has failed"""
    producer: Producer | None = None
    """whose transaction the records are part of: they count when it commits"""
    atomic: bool = True
    """False: the records may be spread over several batches"""
    after_writes: bool = False
    """the answer shows state that may be appended but not committed: hold it back until it is"""

    def complete(self, ticket: int, response: object) -> None:
        self.completions.append(Completion(ticket, response))
