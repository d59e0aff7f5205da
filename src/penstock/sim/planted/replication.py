"""Planted bugs of the ISR, the controller and the metadata log, which three brokers show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.broker.metadata_snapshots import MetadataSnapshots
from penstock.core.controller import brokers
from penstock.core.controller import isr as controller_isr
from penstock.core.log.log import Log
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.core.raft import follower
from penstock.core.raft.raft import Raft
from penstock.core.raft.replicated_log import ReplicatedLog
from penstock.core.replication.isr import IsrChange
from penstock.core.replication.leading import Leading
from penstock.core.replication.partition import Partition
from penstock.core.replication.replica import Replica
from penstock.protocol.generated.alter_partition_request import BrokerState
from penstock.protocol.message import Message
from penstock.sim.planted.bug import Bug, Patch

_KILLS = {"faults": ("kill", "pause"), "fault_every_ms": 300, "fault_ms": 4_000, "think_ms": 2, "flush": True}
_CUTS = {"faults": ("partition", "one-way", "pause"), "fault_every_ms": 300, "fault_ms": 4_000, "think_ms": 2}
_STOPS = {"faults": ("stop", "pause"), "fault_every_ms": 300, "fault_ms": 1_000, "think_ms": 2}


def _any_epoch(self: Partition, epoch: int) -> None:
    """Whatever leader epoch the other knows."""


_expansion = Leading.expansion


def _expansion_unawaited(self: Leading, replica: Replica, high_watermark: int) -> IsrChange | None:
    """Who is to join is not waited for until the answer comes."""
    change = _expansion(self, replica, high_watermark)
    self.maximal_isr = self.isr
    return change


def _eligible_in_any_life(self: Leading, replica: Replica) -> bool:
    return self._cluster.epoch_of(replica.broker_id) is not None and replica.broker_epoch is not None


def _eligible_though_fenced(self: Leading, replica: Replica) -> bool:
    return replica.broker_epoch is not None


def _none_is_ineligible(image: Image, named: BrokerState) -> bool:
    return False


_without = brokers._without


def _without_doubt(image: Image, node: Node, broker_id: int, *, lost: bool = False) -> Iterator[Message]:
    """Who crashed is taken for one who stopped."""
    return _without(image, node, broker_id)


def _from_the_start(log: ReplicatedLog, epoch: int, end_offset: int) -> int:
    """All of it is fetched again."""
    return log.start_offset


_on_fetched = follower.Follower._on_fetched


def _on_fetched_unasserted(self: follower.Follower, raft: Raft, request: Any, answer: Any, now_ms: int) -> None:
    known, raft.high_watermark = raft.high_watermark, 0
    try:
        _on_fetched(self, raft, request, answer, now_ms)
    finally:
        raft.high_watermark = max(known, raft.high_watermark)


_prune = MetadataSnapshots.prune


def _prune_by_size(self: MetadataSnapshots, metadata: Log) -> None:
    """The log is kept for its size, whatever the snapshots reach."""
    _prune(self, metadata)
    metadata.roll(self._clock.wall_ms())
    metadata.delete_before(metadata.end_offset)


REPLICATION_BUGS = (
    Bug(
        "any-leader-epoch",
        "KAFKA-7395, KIP-320",
        "a leader serves whoever knows another leader epoch",
        (Patch(Partition, "check_epoch", _any_epoch),),
        ("R15",),
        within=10,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "no-maximal-isr",
        "KIP-497",
        "the watermark does not wait for who is about to join the ISR",
        (Patch(Leading, "expansion", _expansion_unawaited),),
        ("R5",),
        within=5,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "rebooted-follower",
        "KAFKA-14617, KIP-903",
        "a follower joins the ISR by what it fetched before it was restarted",
        (
            Patch(Leading, "_is_eligible", _eligible_in_any_life),
            Patch(controller_isr, "_is_ineligible", _none_is_ineligible),
        ),
        ("R8", "R15"),
        within=10,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "fenced-in-isr",
        "KAFKA-13916, KIP-841",
        "a broker that is fenced or about to stop joins the ISR",
        (
            Patch(Leading, "_is_eligible", _eligible_though_fenced),
            Patch(controller_isr, "_is_ineligible", _none_is_ineligible),
        ),
        ("R8",),
        within=10,
        nodes=3,
        options=_STOPS,
    ),
    Bug(
        "crashed-is-eligible",
        "KIP-966",
        "a broker that comes back from a crash may still be elected as one that holds everything",
        (Patch(brokers, "_without", _without_doubt),),
        ("R9",),
        within=10,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "metadata-cut-below-watermark",
        "KAFKA-12460",
        "a voter whose log differs at the end drops what was committed too",
        (
            Patch(follower, "truncation_point", _from_the_start),
            Patch(follower.Follower, "_on_fetched", _on_fetched_unasserted),
        ),
        ("K7",),
        seed=2,
        within=10,
        nodes=3,
        options=_CUTS,
    ),
    Bug(
        "metadata-dropped-past-snapshot",
        "KAFKA-14238",
        "the metadata log is cut at its beginning further than its newest snapshot reaches",
        (Patch(MetadataSnapshots, "prune", _prune_by_size),),
        ("K7",),
        within=3,
        nodes=3,
        events=2_000,
        options=_KILLS,
    ),
)
