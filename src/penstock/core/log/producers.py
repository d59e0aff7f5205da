"""What a partition remembers of each idempotent or transactional producer.

Invariants: (P1) per producer and epoch, sequences enter the log once, in order, without a gap, modulo 2^31; (P2) a
batch among the last five that is sent again gets its first offsets back and is not appended; (P4) the state is a
function of the log: rebuilt from any snapshot, or from the start, it is the same.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import PRODUCER_BATCHES_KEPT
from penstock.core.log.txn_index import AbortedTransaction
from penstock.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_MAX

NO_OFFSET = -1
EPOCH_MAX = 2**15 - 1


class ProducerBatch(NamedTuple):
    """One of a producer's last batches, enough to recognise it and to repeat its answer."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int


class Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.txn_first_offset = NO_OFFSET
        self.batches: list[ProducerBatch] = []
        """The newest last. Invariant: at most five, all of `epoch`."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Producer) and all(getattr(self, s) == getattr(other, s) for s in self.__slots__)

    def __repr__(self) -> str:
        return f"Producer({', '.join(f'{slot}={getattr(self, slot)}' for slot in self.__slots__)})"


class Producers:
    __slots__ = ("_completed", "_ongoing", "end_offset", "entries", "where")

    def __init__(self, where: str = "") -> None:
        self.where = where
        """The partition's name, for messages."""
        self.entries: dict[int, Producer] = {}
        self.end_offset = 0
        """The state covers the log up to here."""
        self._ongoing: dict[int, int] = {}
        """First offset -> producer id of each open transaction. Invariant: first offsets ascend."""
        self._completed: dict[int, int] = {}
        """First offset -> marker's offset of transactions whose marker may be above the high watermark."""

    def check(self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int) -> ProducerBatch | None:
        """Whether a client's batch may follow. Returns the batch that it repeats, or None where it is new.

        A producer of whom nothing is known may start with any sequence, as in Kafka: its records may have expired."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return None
        if epoch != entry.epoch:
            self._check_epoch(entry, epoch)
            if first_sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
                raise self._out_of_order(entry, epoch, first_sequence)
            return None
        batches = entry.batches
        last = batches[-1].last_sequence if batches else NO_SEQUENCE
        if first_sequence == last + 1 or (first_sequence == 0 and last == SEQUENCE_MAX):
            return None
        for batch in batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        raise self._out_of_order(entry, epoch, first_sequence)

    def check_coordinator(self, producer_id: int, epoch: int) -> None:
        """A coordinator's batch has no sequence; only its epoch is checked."""
        entry = self.entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            self._check_epoch(entry, epoch)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
        """From transactions of version 2 on, a marker carries a higher epoch than the records that it ends; the same
        one only where it repeats itself, or where there is none higher (KAFKA-19367)."""
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        self._check_epoch(entry, epoch)
        if transaction_version >= 2 and epoch == entry.epoch and entry.txn_first_offset >= 0 and epoch != EPOCH_MAX:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"marker for producer {producer_id} in {self.where}: epoch {epoch} is not above that of the records",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker for producer {producer_id} in {self.where}: coordinator epoch {coordinator_epoch} is older "
                f"than {entry.coordinator_epoch}",
            )

    def check_transactional(self, producer_id: int, transactional: bool) -> None:
        entry = self.entries.get(producer_id)
        if entry is not None and entry.txn_first_offset >= 0 and not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {producer_id} has an open transaction in {self.where}; a batch outside of it is refused",
            )

    def on_batch(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        base_offset: int,
        delta: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """The batch is in the log."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = Producer(producer_id)
        batches = entry.batches
        if entry.epoch != epoch:
            entry.epoch = epoch
            batches.clear()
        elif len(batches) == PRODUCER_BATCHES_KEPT:
            del batches[0]
        last_sequence = (first_sequence + delta) & SEQUENCE_MAX if first_sequence >= 0 else NO_SEQUENCE
        batches.append(ProducerBatch(first_sequence, last_sequence, base_offset + delta, delta, timestamp))
        entry.last_timestamp = timestamp
        if transactional and entry.txn_first_offset < 0:
            entry.txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id

    def on_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, aborted: bool, offset: int, timestamp: int
    ) -> AbortedTransaction | None:
        """The end-transaction marker at `offset` is in the log. Returns what the transaction index must keep."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = Producer(producer_id)
        if entry.epoch != epoch:
            entry.epoch = epoch
            entry.batches.clear()
        first_offset = entry.txn_first_offset
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.txn_first_offset = NO_OFFSET
        if first_offset < 0 or self._ongoing.pop(first_offset, None) is None:
            return None
        self._completed[first_offset] = offset
        if not aborted:
            return None
        return AbortedTransaction(producer_id, first_offset, offset, next(iter(self._ongoing), offset + 1))

    def last_stable_offset(self, high_watermark: int) -> int:
        """Where a read_committed reader must stop: the first record of a transaction that is open, or whose marker is
        not below the high watermark; the high watermark where there is none."""
        if not self._ongoing and not self._completed:
            return high_watermark
        for first_offset, marker in list(self._completed.items()):
            if marker < high_watermark:
                del self._completed[first_offset]
        first = min([*self._completed, next(iter(self._ongoing), high_watermark), high_watermark])
        return min(first, high_watermark)

    @property
    def first_undecided_offset(self) -> int | None:
        """The first record of an open transaction; compaction stops before it."""
        return next(iter(self._ongoing), None)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Of this epoch: one of the epoch before is being ended, and what comes next must not become part of it."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch

    def load(self, entries: list[Producer], end_offset: int) -> None:
        """Start over from a snapshot."""
        self.entries = {entry.producer_id: entry for entry in entries}
        opened = sorted((e.txn_first_offset, e.producer_id) for e in entries if e.txn_first_offset >= 0)
        self._ongoing = dict(opened)
        self._completed = {}
        self.end_offset = end_offset

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers without an open transaction that have been silent for long. Returns how many."""
        silent = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        return len(silent)

    def _check_epoch(self, entry: Producer, epoch: int) -> None:
        if epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {entry.producer_id} in {self.where}: epoch {epoch} is older than {entry.epoch}; another "
                "producer has taken over",
            )

    def _out_of_order(self, entry: Producer, epoch: int, first_sequence: int) -> KafkaError:
        last = entry.batches[-1].last_sequence if entry.batches else NO_SEQUENCE
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {entry.producer_id} in {self.where}: sequence {first_sequence} of epoch {epoch} does not follow "
            f"sequence {last} of epoch {entry.epoch}",
        )
