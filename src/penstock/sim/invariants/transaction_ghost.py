"""What is true of transactions, whatever coordinators and leaders say: kept from what was committed, batch by batch.

T1  a reader of committed records sees a transactional record only once its transaction is known to be committed: a
    marker of that was, or its coordinator has decided so and has yet to hear that all markers are. (A copy that comes
    back with a marker at or above its watermark takes the transaction for ended, as in Kafka: its snapshot of producers
    does not tell when it was. Where that marker is lost, another one like it follows.)
T2  the last stable offset is at most the watermark and the start of every open transaction, and never goes back
T3  a transaction has one outcome: every marker is what the coordinator decided, and committed, before it was written,
    and ends that transaction, no other; nothing of an epoch that is over follows its marker
T5  what a reader is told of aborted transactions is all of them that touch what it is given, and no other
T7  of a transactional id, producer id and epoch never go back, and its states follow each other as they may
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from penstock.base.ids import TRANSACTIONS_TOPIC
from penstock.core.log.log import Log
from penstock.core.transactions import records
from penstock.core.transactions.states import LEGAL, Status
from penstock.core.transactions.transaction import Transaction, is_exhausted
from penstock.sim.invariants.batches import Batch, read_records_of
from penstock.sim.invariants.copies import Copy
from penstock.sim.probes import PartitionProbe


class Data(NamedTuple):
    """A batch of records in a transaction."""

    base: int
    producer: tuple[int, int]


class TransactionGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._bases: dict[str, list[int]] = {}
        """partition -> where its committed batches of transactions begin, ascending"""
        self._outcomes: dict[tuple[str, int], bool | None] = {}
        """(partition, base) -> whether its transaction was committed; None: not known yet"""
        self._open: dict[tuple[str, int], list[Data]] = {}
        """(partition, producer id) -> batches without a marker so far"""
        self._ended: dict[tuple[str, int], int] = {}
        """(partition, producer id) -> the epoch of its last marker"""
        self._decided: dict[tuple[int, int], bool] = {}
        """(producer id, epoch of the markers) -> what the coordinator decided"""
        self._ids: dict[str, Transaction] = {}
        """transactional id -> its last committed state"""

    def committed(self, name: str, batch: Batch, log: Log) -> None:
        """A watermark has passed this batch, for the first time."""
        if name.startswith(f"{TRANSACTIONS_TOPIC}-"):
            self._decide(batch, log)
        elif batch.control:
            self._end(name, batch)
        elif batch.transactional:
            self._begin(name, batch)

    def consumed(self, name: str, offset: int) -> None:
        bases = self._bases.get(name, [])
        slot = bisect_right(bases, offset) - 1
        if slot < 0:
            return
        known = self._outcomes[name, bases[slot]]
        if known is False or (known is None and not self._is_being_committed(name, bases[slot])):
            self._tell("T1", f"{name} offset {offset} was read, its transaction is {_WORDS[known]}")

    def _is_being_committed(self, name: str, base: int) -> bool:
        """Whether the coordinator of the transaction of a batch without a marker is writing markers of a commit."""
        producer_id, epoch = next(
            data.producer
            for (partition, _), batches in self._open.items()
            if partition == name
            for data in batches
            if data.base == base
        )
        return any(
            one.status is Status.PREPARE_COMMIT
            and one.producer_id == producer_id
            and one.producer_epoch - 1 <= epoch <= one.producer_epoch
            for one in self._ids.values()
        )

    def moved(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        """A copy has moved: where readers of committed records must stop (T2)."""
        stable = probe.last_stable
        first = min(copy.open.values(), default=stable)
        if stable > probe.high_watermark or stable > first:
            told = f"the watermark is {probe.high_watermark}, the first open transaction began at {first}"
            self._tell("T2", f"{where}: the last stable offset is {stable}, {told}")
        if probe.leads and probe.epoch == copy.epoch and stable < copy.last_stable:
            self._tell("T2", f"{where}: the last stable offset went back from {copy.last_stable} to {stable}")

    def told_aborted(self, where: str, copy: Copy, start: int, end: int, told: Iterable[tuple[int, int]]) -> None:
        """A reader was given `start` to `end` at read_committed, with (producer id, first offset) of what was aborted
        (T5)."""
        known = {(one.producer_id, one.first): one for one in copy.aborted}
        given = set(told)
        for key in sorted(given - known.keys()):
            self._tell("T5", f"{where}: the transaction of producer {key[0]} from {key[1]} is told to be aborted")
        for key, one in known.items():
            if one.marker >= start and one.first < end and key not in given:
                self._tell("T5", f"{where}: {start} to {end} is read without being told of the aborted {one}")

    def _begin(self, name: str, batch: Batch) -> None:
        producer_id, epoch = batch.producer
        over = self._ended.get((name, producer_id), -1)
        if epoch < over:
            self._tell("T3", f"{name}: {batch} comes after a marker of epoch {over}")
        self._bases.setdefault(name, []).append(batch.base)
        self._outcomes[name, batch.base] = None
        self._open.setdefault((name, producer_id), []).append(Data(batch.base, batch.producer))

    def _end(self, name: str, batch: Batch) -> None:
        producer_id, epoch = batch.producer
        self._ended[name, producer_id] = epoch
        commits = batch.commits
        if commits is None:
            return
        if self._decided.get(batch.producer) is not commits:
            decided = _WORDS[self._decided.get(batch.producer)]
            self._tell("T3", f"{name}: {batch} ends a transaction that its coordinator has {decided}")
        for data in self._open.pop((name, producer_id), []):
            self._outcomes[name, data.base] = commits
            if not epoch - 1 <= data.producer[1] <= epoch:
                self._tell("T3", f"{name}: {batch} ends another transaction, of epoch {data.producer[1]}")

    def _decide(self, batch: Batch, log: Log) -> None:
        for record in read_records_of(log, batch):
            transactional_id = None if record.key is None else records.read_key(bytes(record.key))
            if transactional_id is None:
                continue
            if record.value is None:
                self._ids.pop(transactional_id, None)
                continue
            now = records.read_value(transactional_id, bytes(record.value))
            self._check_step(self._ids.get(transactional_id), now)
            self._ids[transactional_id] = now
            if now.status.is_prepared:
                self._decided[now.producer_id, now.producer_epoch] = now.status is Status.PREPARE_COMMIT

    def _check_step(self, before: Transaction | None, now: Transaction) -> None:
        if before is None:
            return
        if now.status is not before.status and now.status not in LEGAL[before.status]:
            invariant = "T3" if before.status.is_prepared else "T7"
            self._tell(invariant, f"{now.transactional_id} goes from {before.status.label} to {now.status.label}")
        same = now.producer_id == before.producer_id
        if (same and now.producer_epoch < before.producer_epoch) or not (same or is_exhausted(before.producer_epoch)):
            was = f"producer {before.producer_id} at epoch {before.producer_epoch}"
            told = f"goes from {was} to producer {now.producer_id} at epoch {now.producer_epoch}"
            self._tell("T7", f"{now.transactional_id} {told}")


_WORDS = {None: "not decided", True: "committed", False: "aborted"}
