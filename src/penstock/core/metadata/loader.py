"""A log of metadata read record by record: metadata transactions take effect at their end, or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.metadata.delta import Delta
from penstock.core.metadata.difference import difference
from penstock.core.metadata.image import EMPTY, Image
from penstock.protocol.generated.abort_transaction_record import AbortTransactionRecord
from penstock.protocol.generated.begin_transaction_record import BeginTransactionRecord
from penstock.protocol.generated.end_transaction_record import EndTransactionRecord
from penstock.protocol.message import Message


class Loader:
    """Invariant: `image` holds whole batches and whole transactions only."""

    def __init__(self, image: Image = EMPTY) -> None:
        self.image = image
        self._transaction: list[Message] | None = None
        """Records of a transaction that has not ended."""

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def load(self, records: Iterable[Message], offset: int, epoch: int) -> Delta:
        """Take one committed batch, whose last record is at `offset`; `image` is the next image afterwards."""
        delta = Delta(self.image)
        for record in records:
            self._take(record, delta)
        self.image = delta.apply(offset, epoch)
        return delta

    def load_snapshot(self, records: Iterable[Message], offset: int, epoch: int) -> Delta:
        """A snapshot that ends with `offset` takes the place of everything so far."""
        before, fresh = self.image, Loader()
        fresh.load(records, offset, epoch)
        self.image, self._transaction = fresh.image, None
        return difference(before, self.image)

    def _take(self, record: Message, delta: Delta) -> None:
        if isinstance(record, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(record, AbortTransactionRecord):
            self._transaction = None
        elif isinstance(record, EndTransactionRecord):
            for held in self._transaction or ():
                delta.replay(held)
            self._transaction = None
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            delta.replay(record)
