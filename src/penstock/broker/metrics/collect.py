"""One scrape: every room in turn, with the loop going on in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib import import_module

from penstock.broker.in_thread import in_thread
from penstock.broker.metrics.groups import groups
from penstock.broker.metrics.own import own
from penstock.broker.metrics.partitions import partitions
from penstock.broker.metrics.server import raft, server
from penstock.broker.metrics.shares import shares
from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition
from penstock.broker.metrics.topics import requests, traffic

_ROOMS = (traffic, requests, partitions, groups, shares, server, raft, own)
_SLICE_MS = 4
"""how long a scrape may hold the loop before others get their turn"""


async def collect(sources: Sources) -> bytes:
    out = Exposition()
    clock = sources.clock
    process = _process(sources)
    pieces: list[bytes] = []
    since_ms = clock.monotonic_ms()
    for piece in _work(sources, out):
        if piece is not None:
            pieces.append(piece)
        if clock.monotonic_ms() - since_ms >= _SLICE_MS:
            await asyncio.sleep(0)
            since_ms = clock.monotonic_ms()
    pieces.append(await process)
    return b"".join(pieces)


def _work(sources: Sources, out: Exposition) -> Iterator[bytes | None]:
    """All of it in small steps; some of them give a piece of the text."""
    for room in _ROOMS:
        yield from room(sources, out)
    yield from out.pieces()


def _process(sources: Sources) -> asyncio.Future[bytes]:
    """In a thread: the import takes its time, and so does counting the open files of a large broker."""
    return in_thread(sources.jobs, _process_text)


def _process_text() -> bytes:
    text: bytes = import_module("penstock.broker.metrics.process").exposition()
    return text
