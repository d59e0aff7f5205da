"""A healed cluster at rest.

L3  every partition has a leader, all its replicas that are not lost for good are in sync and have all of it, and all
    of it is committed (followers from which nobody reads hear of the last watermark with the next record)
L4  the copies of a partition are the same, byte by byte
L5  no group rebalances
T4  no transaction is open
G6  what group coordinators know is what their logs say, compacted or not; T7  so do transaction coordinators
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from penstock.base.errors import KafkaError
from penstock.core.log.log import Log
from penstock.core.metadata.image import NO_LEADER, Image, Partition
from penstock.records.batch import iterate
from penstock.sim.cluster import Node, SimCluster
from penstock.sim.probes import (
    PartitionProbe,
    coordinators_of,
    groups_of,
    image_of,
    open_transactions_of,
    partitions_of,
)

_RESTING = ("Stable", "Empty", "Dead")
_READ_BYTES = 1 << 20


def unsettled(cluster: SimCluster) -> str:
    """What is not as L3 says, in words; empty where all is."""
    image = max(filter(None, map(image_of, cluster.nodes)), key=lambda one: one.offset, default=Image())
    copies = {(node.id, probe.name): probe for node in cluster.nodes for probe in partitions_of(node)}
    lost = [node.id for node in cluster.nodes if node.lost]
    for topic in image.topics.values():
        for index, described in topic.partitions.items():
            standing = [replica for replica in described.replicas if replica not in lost]
            fault = _fault(f"{topic.name}-{index}", described, standing, copies)
            if fault:
                return fault
    return ""


def _fault(name: str, described: Partition, standing: list[int], copies: dict[tuple[int, str], PartitionProbe]) -> str:
    if described.leader == NO_LEADER:
        return f"nobody leads {name}"
    if len(described.isr) < len(standing):
        return f"{name}: of {standing} only {described.isr} are in sync"
    leader = copies.get((described.leader, name))
    if leader is None or not leader.leads:
        return f"{name}: broker {described.leader} does not lead"
    if leader.high_watermark != leader.end:
        return f"{name} ends at {leader.end} and is committed up to {leader.high_watermark}"
    for replica in standing:
        copy = copies.get((replica, name))
        if copy is None or copy.end != leader.end:
            return f"{name}: the leader ends at {leader.end}, broker {replica} {copy and f'at {copy.end}'}"
    return ""


def failed(cluster: SimCluster) -> list[Node]:
    """Brokers with a log that takes no more writes: an operator starts them again."""
    return [node for node in cluster.nodes if any(probe.failure is not None for probe in partitions_of(node))]


def unstable(cluster: SimCluster) -> str:
    """A group that L5 does not hold for; empty where there is none."""
    for node in cluster.nodes:
        for group, state in groups_of(node):
            if state not in _RESTING:
                return f"{node.host}: the group {group} is {state}"
    return ""


def undecided(cluster: SimCluster) -> str:
    """A transaction that T4 does not hold for; empty where there is none."""
    for node in cluster.nodes:
        for name, since in open_transactions_of(node):
            return f"{node.host}: {name} has a transaction open since {since}"
    return ""


def reloaded(cluster: SimCluster) -> Iterator[tuple[str, str]]:
    """Coordinators whose state is another than what a new one would load, with the invariant."""
    for node in cluster.nodes:
        for coordinator, state, loaded in coordinators_of(node):
            if state != loaded:
                invariant = "T7" if coordinator.startswith("transaction") else "G6"
                yield invariant, f"{node.host}: the {coordinator} knows {state}, its log says {loaded}"


def differences(cluster: SimCluster) -> Iterator[str]:
    """Copies that are not the same. Each broker compacts by itself: such logs are not compared."""
    known: dict[str, tuple[str, int, int]] = {}
    for node in cluster.nodes:
        for probe in partitions_of(node):
            if probe.start > 0 or probe.log.config.is_compacted:
                continue
            told = _sum_of(probe.log)
            host, *other = known.setdefault(probe.name, (node.host, *told))
            if (*other,) != told:
                yield f"{probe.name} is not the same on {host} and {node.host}"


def _sum_of(log: Log) -> tuple[int, int]:
    size = sum_ = 0
    at = log.start_offset
    try:
        while at < log.end_offset:
            data = b"".join(piece.read() for piece in log.read(at, _READ_BYTES, limit_offset=log.end_offset))
            size, sum_ = size + len(data), crc32(data, sum_)
            at = _end_of(data)
    except KafkaError:
        return -1, log.end_offset
    return size, sum_


def _end_of(data: bytes) -> int:
    return [header.next_offset for _, header in iterate(memoryview(data))][-1]
