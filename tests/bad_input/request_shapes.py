"""Requests of every served API bent in their shape: arrays empty, null, doubled; counts and tags that claim too much.

A valid request is written while its writer is watched, so that each place where a count or the tagged fields of a
structure stand is known, and can be given another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.base.varint import write_uvarint
from penstock.broker.apis import served
from penstock.broker.network.table import Row
from penstock.protocol.message import Message, Structure
from penstock.protocol.registry import request_class
from tests.wire.invention import invent

ROWS: list[Row] = served().rows
SEEDS = 40
TAG_BOMB = 1_000_000


def arrays_of(structure: Any) -> Iterator[tuple[Any, str]]:
    """Each field that holds a list, with its owner, outermost first."""
    for name in structure.__slots__:
        value = getattr(structure, name)
        if isinstance(value, list):
            yield structure, name
            for item in value:
                if isinstance(item, Structure):
                    yield from arrays_of(item)


def full(row: Row, version: int) -> Message:
    """The invented request that has the most arrays, so that as many shapes as possible can be bent."""
    candidates = [invent(request_class(row.key), version, seed, tame=True) for seed in range(SEEDS)]
    return max(candidates, key=lambda one: sum(1 for _ in arrays_of(one)))


def bent_arrays(row: Row, version: int) -> Iterator[tuple[str, Message]]:
    """The request with one of its arrays empty, null (where it can be written) or twice as long."""
    for at in range(sum(1 for _ in arrays_of(full(row, version)))):
        for shape in ("empty", "null", "doubled"):
            request = full(row, version)
            owner, field = list(arrays_of(request))[at]
            items = getattr(owner, field)
            setattr(owner, field, {"empty": [], "null": None, "doubled": items * 2}[shape])
            yield f"{field} {shape}", request
    yield "nothing set", request_class(row.key)()


def count_bombs(body: bytes, flexible: bool) -> Iterator[bytes]:
    """A count of two billion, before and after every prefix of a valid body."""
    claims = [b"\xff\xff\xff\xff\x07"] if flexible else [b"\x7f\xff\xff\xff"]
    for at in range(min(len(body), 48) + 1):
        for claim in claims:
            yield body[:at] + claim + bytes(200)
            yield body[:at] + claim + body[at:]


def tag_bombs(body: bytes) -> Iterator[bytes]:
    """A million tagged fields where the last ones of a valid body stand, behind every prefix, and before all of it."""
    count = bytearray()
    write_uvarint(count, TAG_BOMB)
    fields = bytearray()
    for tag in range(2_000):
        write_uvarint(fields, tag)
        fields.append(0)
    for at in (0, len(body) // 2, max(len(body) - 1, 0), len(body)):
        yield body[:at] + bytes(count + fields)
