"""What a reader of committed records sees: whole batches, without markers and without aborted transactions.

A broker lists the aborted transactions that touch the bytes it returns, each by its producer and its first offset. From
that offset on, that producer's transactional batches are dropped until its abort marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.base.ports import Buffer
from penstock.records.batch import BatchHeader, iterate
from penstock.records.control import read_end_marker


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int


def visible_batches(
    data: Buffer, aborted: Iterable[Aborted] = (), *, committed_only: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """The batches with their positions in `data`: no control batches, and none of an aborted transaction where only
    committed records are wanted."""
    pending = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    doomed: set[int] = set()
    for at, header in iterate(data):
        while pending and pending[-1].first_offset <= header.last_offset:
            doomed.add(pending.pop().producer_id)
        if header.is_control:
            if committed_only and header.producer_id in doomed:
                marker = read_end_marker(data, at)
                if marker is not None and not marker.committed:
                    doomed.discard(header.producer_id)
            continue
        if committed_only and header.is_transactional and header.producer_id in doomed:
            continue
        yield at, header
