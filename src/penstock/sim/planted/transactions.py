"""Planted bugs of transactions, groups and compaction, which three brokers show."""

from __future__ import annotations

from typing import Any

from penstock.base.ids import TopicPartition
from penstock.broker.coordinator import Coordinator
from penstock.broker.marker_sending import MarkerSending
from penstock.core.coordinator.result import CoordinatorRecord, Now, Result
from penstock.core.groups import expiry
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.store import Store
from penstock.core.log import cleaner
from penstock.core.log.compaction_cleaner import Cleaner
from penstock.core.log.log import Log
from penstock.core.log.producers import Producers
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.log.verification import Verifications
from penstock.core.replication.partition import Partition
from penstock.core.transactions.markers import MarkerOrder
from penstock.core.transactions.state import State
from penstock.core.transactions.transaction import Transaction
from penstock.sim.planted.bug import Bug, Patch

_BUSY = {"transactors": 2, "copiers": 1, "producers": 2, "think_ms": 2, "readers": 0, "members": 0}
_CALM = _BUSY | {"faults": ()}
_KILLS = _BUSY | {"faults": ("kill", "pause", "client"), "fault_every_ms": 300, "fault_ms": 1_000, "flush": True}
_GROUPS = {"members": 2, "think_ms": 2, "faults": ("kill", "pause", "client"), "fault_every_ms": 300, "fault_ms": 1_000}


def _stable_is_committed(self: Partition) -> int:
    """Where readers of committed records stop: at the watermark."""
    return self.high_watermark


def _none_aborted(self: Log, offset: int, end_offset: int) -> list[AbortedTransaction]:
    return []


def _never_verify(self: Log, producer_id: int, epoch: int, sequence: int, now_ms: int) -> None:
    """The coordinator is not asked."""


def _any_guard(self: Verifications, producer_id: int, sequence: int, guard: object, where: str) -> None:
    """No proof is wanted."""


_decide = State.decide


def _decide_and_order(self: State, prepared: Transaction, response: object, now: Now) -> Result:
    """Markers go out with the decision, not once it is committed."""
    order = (
        prepared.transactional_id,
        prepared.producer_id,
        prepared.producer_epoch,
        prepared.status.label == "PrepareCommit",
        self.coordinator_epoch,
        prepared.client_version,
        prepared.partitions,
    )
    self.orders.append(MarkerOrder(*order))
    return _decide(self, prepared, response, now)


_send = MarkerSending._send


async def _send_first(
    self: MarkerSending, order: MarkerOrder, partitions: list[TopicPartition]
) -> list[TopicPartition]:
    """The first partition gets its marker, and the transaction counts as ended."""
    await _send(self, order, partitions[:1])
    return []


_replay_offset = Store._replay_offset


def _replay_at_once(self: Store, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
    """Offsets of a transaction count before it is committed."""
    _replay_offset(self, record, offset, -1)


def _commit_at_once(self: Coordinator[Any], last_offset: int, now: Now) -> None:
    """What is appended is committed."""
    self.runtime.committed(last_offset + 1, now)


def _always_expired(*args: Any) -> bool:
    return True


_job_for = cleaner.job_for


def _job_past_watermark(segments: Any, producers: Producers, config: Any, **more: Any) -> Any:
    """Everything that is closed may be cleaned."""
    more["high_watermark"] = more["end_offset"]
    return _job_for(segments, Producers(), config, **more)


def _no_control(self: Cleaner, header: Any, raw: Any) -> None:
    """A marker is dropped by the first pass that sees it."""


_clean_records = Cleaner._clean_records


def _clean_the_last_too(self: Cleaner, header: Any, raw: Any) -> Any:
    """What is as old as the last record of its key has been replaced."""
    known = self._map.offsets
    self._map.offsets = {key: offset + 1 for key, offset in known.items()}
    try:
        return _clean_records(self, header, raw)
    finally:
        self._map.offsets = known


_stored_value = ClassicGroup.stored_value


def _stored_for_all(self: ClassicGroup, assignments: dict[str, bytes]) -> Any:
    """What the first member is given, everybody is."""
    first = next(iter(assignments.values()), b"")
    return _stored_value(self, dict.fromkeys(self.members, first))


TRANSACTION_BUGS = (
    Bug(
        "stable-at-watermark",
        "KAFKA-9807",
        "readers of committed records are given what is not decided yet",
        (Patch(Partition, "last_stable_offset", property(_stable_is_committed)),),
        ("T1", "T2"),
        within=3,
        nodes=3,
        events=2_000,
        options=_CALM,
    ),
    Bug(
        "aborted-not-told",
        "Jepsen's aborted read (G1a), as Redpanda had it",
        "readers of committed records are not told which transactions were aborted",
        (Patch(Log, "aborted_transactions", _none_aborted),),
        ("T5", "T1"),
        within=3,
        nodes=3,
        events=2_000,
        options=_CALM,
    ),
    Bug(
        "batch-unverified",
        "KAFKA-14402, KIP-890",
        "a batch enters a log though its coordinator knows of no transaction there, which nobody ends",
        (Patch(Log, "verify", _never_verify), Patch(Verifications, "check", _any_guard)),
        ("T4", "L2"),
        within=3,
        nodes=3,
        events=2_000,
        options=_CALM,
    ),
    Bug(
        "markers-before-decision",
        "KIP-98: markers follow a decision that is committed",
        "markers are written while the outcome may still be lost",
        (Patch(State, "decide", _decide_and_order),),
        ("T3",),
        within=5,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "one-marker-sent",
        "hanging transactions (KIP-890)",
        "of the partitions of a transaction only one gets its marker",
        (Patch(MarkerSending, "_send", _send_first),),
        ("T3", "T4"),
        within=3,
        nodes=3,
        events=2_000,
        options=_CALM,
    ),
    Bug(
        "offsets-before-commit",
        "KAFKA-6120 and its kin: offsets that do not wait for their transaction",
        "the offsets of a transaction count before it is committed, and stay where it is aborted",
        (Patch(Store, "_replay_offset", _replay_at_once),),
        ("E1", "G4"),
        seed=2,
        within=10,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "commit-acked-early",
        "offsets.commit.required.acks, gone with Apache Kafka 4.0",
        "a commit is acked before it is on all copies in sync",
        (Patch(Coordinator, "_await_commit", _commit_at_once),),
        ("G4", "T3", "T7"),
        within=5,
        nodes=3,
        options=_GROUPS,
    ),
    Bug(
        "offsets-expire-early",
        "KAFKA-13636, KAFKA-8069",
        "offsets of a group that is at work expire",
        (Patch(expiry, "_has_expired", _always_expired), Patch(expiry, "_may_expire", _always_expired)),
        ("G5", "G4"),
        within=5,
        nodes=3,
        options=_CALM,
    ),
    Bug(
        "cleaned-past-watermark",
        "KAFKA-13194",
        "compaction goes by records that are not committed",
        (Patch(cleaner, "job_for", _job_past_watermark),),
        ("C1",),
        seed=2,
        within=10,
        nodes=3,
        events=6_000,
        options=_KILLS | {"members": 2},
    ),
    Bug(
        "markers-cleaned",
        "KAFKA-14055, KAFKA-13727",
        "compaction drops the markers of transactions at once",
        (Patch(Cleaner, "_clean_control", _no_control),),
        ("C2",),
        seed=2,
        within=10,
        nodes=3,
        events=6_000,
        options=_CALM,
    ),
    Bug(
        "cleaned-too-much",
        "KAFKA-1755 and its kin",
        "compaction drops the last value of a key too",
        (Patch(Cleaner, "_clean_records", _clean_the_last_too),),
        ("C1",),
        within=5,
        nodes=3,
        events=6_000,
        options=_CALM | {"members": 2},
    ),
    Bug(
        "two-owners",
        "KAFKA-16147",
        "two members of a generation are given the same partitions",
        (Patch(ClassicGroup, "stored_value", _stored_for_all),),
        ("G1",),
        within=5,
        nodes=3,
        options={"members": 2, "think_ms": 10, "faults": ()},
    ),
)
