"""Which partition of `__consumer_offsets` has a group: Java's String.hashCode, as every broker counts."""

from __future__ import annotations

from functools import lru_cache


def java_string_hash(text: str) -> int:
    """String.hashCode as an unsigned 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value


@lru_cache(maxsize=16_384)
def partition_for(group_id: str, partitions: int) -> int:
    """Kafka's `Utils.abs(hash) % partitions`: the absolute value, and 0 for the number that has none."""
    value = java_string_hash(group_id)
    signed = value - 2**32 if value & 0x80000000 else value
    return (0 if value == 0x80000000 else abs(signed)) % partitions


def utf16_length(text: str) -> int:
    """What Java calls the length of a string."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2
