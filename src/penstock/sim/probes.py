"""Where a broker stands, read from its rooms: the only place where the simulator looks inside one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.base.ids import OFFSETS_TOPIC
from penstock.core.log.log import Log
from penstock.sim.cluster import Node


class PartitionProbe(NamedTuple):
    name: str
    log: Log
    start: int
    end: int
    synced: int
    high_watermark: int
    epoch: int
    leads: bool
    flushes: bool
    """an answer waits for the disk"""
    failure: str | None


def partitions_of(node: Node) -> Iterator[PartitionProbe]:
    """Of a broker that serves; nothing of one that does not."""
    if node.broker is None or not node.ready:
        return
    for partition in node.broker.services.partitions.all():
        log = partition.log
        yield PartitionProbe(
            str(partition.name),
            log,
            log.start_offset,
            log.end_offset,
            log.synced_offset,
            partition.high_watermark,
            partition.leader_epoch,
            partition.leading is not None,
            log.config.flush_messages == 1,
            log.failure,
        )


def is_internal(name: str) -> bool:
    return name.startswith(OFFSETS_TOPIC)
