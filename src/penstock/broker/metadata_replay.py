"""The metadata log on its way to images: what is committed is read in order and published to those who follow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from penstock.broker.metadata_log import MetadataLog
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image
from penstock.core.metadata.loader import Loader
from penstock.core.raft.batches import MetadataBatch, read_batches
from penstock.protocol.message import Message
from penstock.records.batch import iterate

_READ_BYTES = 1_048_576

Follower = Callable[[Delta, Image], None]


class Own(NamedTuple):
    """A batch that this node wrote itself: it need not be read back."""

    batch: MetadataBatch
    size_bytes: int


class Replay:
    """Invariant: `loader.image` is what the batches below `next_offset` say, and those are committed."""

    def __init__(self, log: MetadataLog) -> None:
        self.loader = Loader()
        self.next_offset = 0
        self.own: deque[Own] = deque()
        """Written here and not replayed yet, in the order of the log."""
        self._log = log
        self._followers: list[Follower] = []

    def subscribe(self, follower: Follower) -> None:
        self._followers.append(follower)

    def begin_at(self, records: list[Message], offset: int, epoch: int) -> None:
        """A snapshot that ends at `offset`."""
        delta = self.loader.load_snapshot(records, offset - 1, epoch)
        self.next_offset = offset
        self.own.clear()
        for follower in self._followers:
            follower(delta, self.loader.image)

    def up_to(self, high_watermark: int) -> None:
        while self.next_offset < high_watermark:
            snapshot = self._log.snapshot
            if snapshot is not None and self.next_offset < self._log.start_offset:
                content = self._log.snapshots.load(snapshot)
                self.begin_at(content.records, snapshot.offset, snapshot.epoch)
            elif self.own and self.own[0].batch.last_offset < high_watermark and self._is_next(self.own[0]):
                own = self.own.popleft()
                self._take(own.batch, own.size_bytes)
            else:
                self._read(high_watermark)

    def forget_own(self) -> None:
        """The log may be cut: what was written here is read back like everything else, if it stays."""
        self.own.clear()

    def _is_next(self, own: Own) -> bool:
        return own.batch.last_offset - len(own.batch.records) + 1 == self.next_offset

    def _read(self, high_watermark: int) -> None:
        data = self._log.read(self.next_offset, _READ_BYTES)
        for (_, header), batch in zip(iterate(data, 0), read_batches(data), strict=True):
            if batch.last_offset >= high_watermark or (self.own and self._is_next(self.own[0])):
                return
            if batch.last_offset >= self.next_offset:
                self._take(batch, header.size_bytes)

    def _take(self, batch: MetadataBatch, size_bytes: int) -> None:
        delta = self.loader.load(batch.records, batch.last_offset, batch.epoch)
        self.next_offset = batch.last_offset + 1
        self._log.snapshots.grew(size_bytes, batch.timestamp)
        for follower in self._followers:
            follower(delta, self.loader.image)
