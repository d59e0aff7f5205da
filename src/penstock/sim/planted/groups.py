"""Planted bugs of consumer groups (KIP-848) and share groups (KIP-932), which three brokers show."""

from __future__ import annotations

from typing import Any

from penstock.core.coordinator.result import Now, Result
from penstock.core.groups import offsets
from penstock.core.groups.consumer import leaving
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.state import State
from penstock.core.share.batches import StateBatch
from penstock.core.sharing.partition import SharePartition
from penstock.core.sharing.window import Run
from penstock.sim.planted.bug import Bug, Patch

_BUSY = {"consumers": 3, "producers": 2, "readers": 0, "members": 0, "transactors": 0, "copiers": 0, "think_ms": 10}
_CALM = _BUSY | {"faults": (), "partitions": 3}
_CUTS = _BUSY | {
    "faults": ("partition", "one-way", "slow-link", "pause"),
    "fault_every_ms": 1_000,
    "fault_ms": 10_000,
    "partitions": 2,
}


def _nobody(self: ConsumerGroup, topic_id: bytes, partition: int) -> None:
    """Whatever a member is to have counts as free."""


def _anybody(*args: Any, **more: Any) -> None:
    """Who commits is not asked for its epoch."""


def _never_overdue(state: State, event: Any, now: Now) -> Result:
    """Whoever is silent stays."""
    return Result()


CONSUMER_GROUP_BUGS = (
    Bug(
        "owner-not-awaited",
        "KAFKA-16147, in KIP-848's protocol",
        "a partition goes to its next member before the last one has given it up",
        (Patch(ConsumerGroup, "owner", _nobody),),
        ("G1",),
        seed=2,
        within=5,
        nodes=3,
        options=_CALM,
    ),
    Bug(
        "epoch-unchecked",
        "KIP-848: STALE_MEMBER_EPOCH",
        "a member that the group has left behind commits",
        (Patch(offsets, "check_consumer_commit", _anybody),),
        ("G3", "G4"),
        seed=9,
        within=10,
        nodes=3,
        options=_CUTS,
    ),
    Bug(
        "crashed-member-stays",
        "KIP-848: group.consumer.session.timeout.ms",
        "what was a member's that has crashed stays its own for ever",
        (Patch(leaving, "on_overdue", _never_overdue),),
        ("L2",),
        within=3,
        nodes=3,
        events=2_000,
        options=_CALM | {"faults": ("client",), "fault_every_ms": 500},
    ),
)

_SHARING: dict[str, Any] = _BUSY | {"consumers": 0, "sharers": 3, "partitions": 1, "batch": 3}
_SHARING_CALM = _SHARING | {"faults": ()}
_SHARING_KILLS = _SHARING | {"faults": ("kill", "stop", "client"), "fault_every_ms": 500, "fault_ms": 1_000}

_lock = SharePartition._lock


def _lock_for_a_moment(self: SharePartition, run: Run, member: str, now_ms: int) -> None:
    """The lock ends when it begins, as far as the leader's timer knows."""
    _lock(self, run, member, now_ms)
    run.deadline_ms = now_ms


def _never_worn(self: SharePartition, run: Run) -> bool:
    return False


def _restored_anew(self: SharePartition, batch: StateBatch) -> None:
    """A new leader begins where the group does, and knows of no record beyond that it is done."""


SHARE_GROUP_BUGS = (
    Bug(
        "lock-too-short",
        "KIP-932: share.record.lock.duration.ms",
        "a record goes to the next member while the last one still has it",
        (Patch(SharePartition, "_lock", _lock_for_a_moment),),
        ("Q1",),
        within=5,
        nodes=3,
        options=_SHARING_CALM,
    ),
    Bug(
        "delivered-for-ever",
        "KIP-932: share.delivery.count.limit",
        "a record that everybody gives back is delivered without an end",
        (Patch(SharePartition, "_is_worn", _never_worn),),
        ("Q3",),
        within=5,
        nodes=3,
        options=_SHARING_CALM,
    ),
    Bug(
        "acceptance-forgotten",
        "KIP-932: a leader goes on from the state batches of the one before",
        "a new leader hands out what was accepted, unless everything before it was done too",
        (Patch(SharePartition, "_restore", _restored_anew),),
        ("Q2",),
        within=10,
        nodes=3,
        options=_SHARING_KILLS,
    ),
)
