"""What a log must know of a producer, worked out from its batches alone (P2 to P4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from penstock.core.log.log import Log
from penstock.core.log.producers import Producer
from penstock.sim.invariants.batches import Batch

KEPT = 5
"""batches by which a repeated one is known, as Kafka keeps them"""


class Recent(NamedTuple):
    epoch: int
    batches: tuple[Batch, ...]
    """the newest last, all of this epoch"""
    open_since: int = -1
    """where its open transaction began"""


def after(before: Recent | None, batch: Batch) -> Recent:
    """The state when this batch of the producer has been appended."""
    epoch = batch.producer[1]
    known = before.batches if before is not None and before.epoch == epoch else ()
    if batch.control:
        return Recent(epoch, known)
    since = before.open_since if before is not None else -1
    if batch.transactional and since < 0:
        since = batch.base
    return Recent(epoch, (*known, batch)[-KEPT:], since)


def faults(log: Log, recent: dict[int, Recent], changed: Iterable[int]) -> Iterator[str]:
    """Where the log knows something else of these producers. Compaction takes batches away, and what is deleted cannot
    be read again: such logs are not judged."""
    if log.config.is_compacted or log.start_offset > 0:
        return
    for producer_id in changed:
        wanted, entry = recent[producer_id], log.producers.entries.get(producer_id)
        if entry is None:
            yield f"nothing is known of producer {producer_id}, its batches say {wanted}"
        elif not _agrees(wanted, entry):
            yield f"{entry} is not what its batches say, {wanted}"


def _agrees(wanted: Recent, entry: Producer) -> bool:
    known = [(one.first_sequence, one.last_offset) for one in entry.batches]
    told = [(one.sequence, one.next - 1) for one in wanted.batches]
    return (entry.epoch, known, entry.txn_first_offset) == (wanted.epoch, told, wanted.open_since)
