"""The aborted transactions whose marker is in a segment (docs/formats/index.md).

    0 version i16 (0)   2 producer id i64   10 first offset i64   18 last offset i64   26 last stable offset i64

`last offset` is the abort marker's; `last stable offset` is where the first still open transaction began at that
moment, or the offset after the marker.
"""

from __future__ import annotations

from struct import Struct, iter_unpack
from typing import NamedTuple

ENTRY_BYTES = 34
VERSION = 0

_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def decode(raw: bytes, base_offset: int) -> list[AbortedTransaction] | None:
    """The entries of a file, or None where they cannot be this segment's."""
    if len(raw) % ENTRY_BYTES:
        return None
    entries = []
    for version, *values in iter_unpack(_ENTRY.format, raw):
        entry = AbortedTransaction(*values)
        if version != VERSION or entry.last_offset < base_offset:
            return None
        entries.append(entry)
    return entries


def encode(entries: list[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(VERSION, *entry) for entry in entries)
