"""Where a broker stands, read from its rooms: the only place where the simulator looks inside one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
    under_min_isr: bool
    """fewer copies are in sync than must be"""
    isr: tuple[int, ...]
    """of a leader"""


class QuorumProbe(NamedTuple):
    """A node of the metadata quorum."""

    epoch: int
    leads: bool
    voted: int
    """-1 where it has not voted in this epoch"""
    high_watermark: int
    end: int
    synced: int
    voters: tuple[int, ...]


def quorum_of(node: Node) -> QuorumProbe | None:
    """None where the process has not read its disk yet."""
    quorum = getattr(node.broker, "_quorum", None)
    if quorum is None:
        return None
    raft = quorum._raft
    voted = -1 if raft.voted is None else raft.voted.id
    voters = tuple(voter.id for voter in raft.history.voters)
    log = raft.log
    return QuorumProbe(
        raft.epoch, raft.is_leading, voted, raft.high_watermark, log.end_offset, log.synced_offset, voters
    )


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
            partition.leading is not None and partition.leading.under_min_isr,
            () if partition.leading is None else partition.leading.isr,
        )
