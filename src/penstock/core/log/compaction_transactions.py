"""Which transactions a cleaning pass has met: whose records were aborted, and whose marker has nothing left to end.

A pass goes forward through the log from its start, so a marker comes after every batch of its transaction that is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.ports import Buffer
from penstock.core.log.txn_index import AbortedTransaction
from penstock.records.batch import BatchHeader
from penstock.records.control import read_end_marker


class Aborted:
    """The aborted transactions of each producer, looked up by offsets that ascend."""

    __slots__ = ("_of_producer",)

    def __init__(self, transactions: Iterable[AbortedTransaction]) -> None:
        self._of_producer: dict[int, list[AbortedTransaction]] = {}
        for each in sorted(transactions, key=lambda each: each.last_offset, reverse=True):
            self._of_producer.setdefault(each.producer_id, []).append(each)

    def at(self, producer_id: int, offset: int) -> AbortedTransaction | None:
        """The aborted transaction of this producer that `offset` belongs to: one of its records, or its marker."""
        waiting = self._of_producer.get(producer_id)
        if waiting is None:
            return None
        while waiting and waiting[-1].last_offset < offset:
            waiting.pop()
        return waiting[-1] if waiting and waiting[-1].first_offset <= offset else None


class Transactions:
    __slots__ = ("_aborted", "_present", "kept")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted`: every aborted transaction that began below the end of the pass, though its marker may come later
        (KAFKA-13727)."""
        self._aborted = Aborted(aborted)
        self._present: set[int] = set()
        """Producers with a batch of the transaction that their next marker ends."""
        self.kept: list[AbortedTransaction] = []
        """Those whose abort marker was met and that had a batch left: the new segment's transaction index."""

    def on_records(self, header: BatchHeader) -> bool:
        """A batch of records. Whether it was aborted, so that nobody may see it."""
        if not header.is_transactional:
            return False
        self._present.add(header.producer_id)
        return self._aborted.at(header.producer_id, header.base_offset) is not None

    def on_control(self, header: BatchHeader, raw: Buffer) -> bool:
        """A control batch. Whether it has become superfluous: it ends a transaction of which no batch was met."""
        if header.records_count == 0:
            return True
        marker = read_end_marker(raw)
        if marker is None:
            return False
        present = header.producer_id in self._present
        self._present.discard(header.producer_id)
        if present and not marker.committed:
            transaction = self._aborted.at(header.producer_id, header.base_offset)
            if transaction is not None:
                self.kept.append(transaction)
        return not present
