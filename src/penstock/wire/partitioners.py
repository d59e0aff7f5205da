"""Which partition a record goes to: by its key as Java's client does, else round robin, or sticky for full batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.base.ports import Buffer

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_MASK = 0xFFFFFFFF


def murmur2(data: Buffer) -> int:
    """The 32-bit hash that Java's client takes of a key, as a signed number."""
    length = len(data)
    value = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _MASK
        value = (value * _MULTIPLIER & _MASK) ^ word
    if length & 3:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    value ^= value >> 15
    return value - (1 << 32) if value >> 31 else value


def partition_of_key(key: Buffer, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Partitioner(Protocol):
    def choose(self, topic: str, key: Buffer | None, partitions: int) -> int: ...

    def batch_closed(self, topic: str) -> None:
        """A batch of this topic is full and on its way."""


class RoundRobin:
    """Keyed records by key, the others one partition after the other."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, topic: str, key: Buffer | None, partitions: int) -> int:
        if key is not None:
            return partition_of_key(key, partitions)
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        return turn % partitions

    def batch_closed(self, topic: str) -> None:
        pass


class Sticky:
    """Keyed records by key, the others all to one partition until its batch is full, then to another by chance."""

    def __init__(self, chance: Callable[[int], int]) -> None:
        self._chance = chance
        self._current: dict[str, int] = {}

    def choose(self, topic: str, key: Buffer | None, partitions: int) -> int:
        if key is not None:
            return partition_of_key(key, partitions)
        current = self._current.get(topic)
        if current is None or current >= partitions:
            current = self._current[topic] = self._chance(partitions)
        return current

    def batch_closed(self, topic: str) -> None:
        self._current.pop(topic, None)
