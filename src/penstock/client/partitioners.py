"""Which partition a record goes to.

`Hash` is Java's default (murmur2 over the key's bytes), so that clients in every language agree where a key lives. It
is done inside librdkafka; records without a key stick to one partition per batch. `RoundRobin` and callables choose
here.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from confluent_kafka import murmur2

Partitioner = Callable[[str, bytes | None, bytes | None, int], int]
"""(topic, key, value, number of partitions) -> partition, 0 <= partition < number."""


class Hash:
    """murmur2 of the key; records without a key are spread by the library."""


class RoundRobin:
    """Each topic's partitions in turn, whatever the key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._lock = Lock()

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        with self._lock:
            turn = self._next.get(topic, 0)
            self._next[topic] = turn + 1
        return turn % partitions


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition that Java's producer, and `Hash`, would choose."""
    return int(murmur2(key, partitions))
