"""Slots: fixed shares of all keys. A packet's slot is what Spark hashes; the names are such that it does so evenly.

Spark puts a row into the task `murmur3(name) mod tasks`. The name of slot s has a hash that leaves s when divided by
480, so with 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 16 ... tasks each gets its even share of 480's divisors.
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

SLOTS = 32
"""As many tasks of one stage can work at once. A checkpoint keeps the number that it began with."""
_EVEN = 480
_SEED = 42
_MASK = 0xFFFF_FFFF


def slot_of(key: bytes, slots: int) -> int:
    return crc32(key) % slots


@cache
def slot_names(slots: int) -> tuple[bytes, ...]:
    """Four bytes for each slot."""
    found: dict[int, bytes] = {}
    candidate = 0
    while len(found) < slots:
        rest = _hash(candidate) % _EVEN
        if rest < slots and rest not in found:
            found[rest] = candidate.to_bytes(4, "little")
        candidate += 1
    return tuple(found[slot] for slot in range(slots))


def _hash(word: int) -> int:
    """Spark's murmur3 of these four bytes, as the signed number that it divides."""
    k = word * 0xCC9E2D51 & _MASK
    k = (k << 15 | k >> 17) & _MASK
    k = k * 0x1B873593 & _MASK
    h = _SEED ^ k
    h = (h << 13 | h >> 19) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & _MASK
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h & 1 << 31 else h
