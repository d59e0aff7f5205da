"""One partition as its leader sees it: the log, the epoch it leads in, and how much of the log is committed."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.slices import Slice
from penstock.core.log.log import Appended, Log, Origin
from penstock.core.log.rewrite import Writable
from penstock.core.log.txn_index import AbortedTransaction
from penstock.core.replication.fetch_session import FetchPartition
from penstock.core.replication.traffic import Traffic

EPOCH_UNKNOWN = -1


class Fetched(NamedTuple):
    """What one read of a partition gives: pieces of files, and where the partition stands."""

    slices: list[Slice]
    size_bytes: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[AbortedTransaction] | None
    """None for read_uncommitted: nobody asked"""
    diverging: tuple[int, int] | None
    """(epoch, end offset) where the reader's history left ours; then there are no slices"""


class Partition:
    def __init__(
        self, name: TopicPartition, topic_id: bytes, log: Log, leader_epoch: int, traffic: Traffic | None = None
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.traffic = traffic or Traffic()
        self.high_watermark = max(log.start_offset, log.synced_offset) if self.flushes_before_ack else log.end_offset
        """Invariant: log.start_offset <= high_watermark <= log.end_offset, and it never goes back."""
        self.watchers: dict[FetchPartition, None] = {}
        """fetch positions to mark when the watermark next moves, in the order in which they came"""

    @property
    def flushes_before_ack(self) -> bool:
        """flush.messages=1: an answer waits for the disk."""
        return self.log.config.flush_messages == 1

    @property
    def last_stable_offset(self) -> int:
        return self.log.last_stable_offset(self.high_watermark)

    def append(self, buf: Writable, at: int, size: int, *, now_ms: int, origin: Origin = "client") -> Appended:
        return self.log.append(buf, at, size, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin)

    def advance(self) -> bool:
        """Bring the watermark up to what is committed; whether it moved."""
        log = self.log
        committed = log.synced_offset if log.config.flush_messages == 1 else log.end_offset
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def check_epoch(self, epoch: int) -> None:
        """Refuse a client that knows an older or a newer leader than this one."""
        if epoch in (EPOCH_UNKNOWN, self.leader_epoch):
            return
        if epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"{self.name} is led in epoch {self.leader_epoch}, not {epoch}"
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self.name} is led in epoch {self.leader_epoch}, not {epoch}"
        )

    def read(self, wanted: FetchPartition, max_bytes: int, *, min_one: bool, committed_only: bool) -> Fetched:
        """The batches from the wanted offset on that its reader may see."""
        self.check_epoch(wanted.leader_epoch)
        log = self.log
        limit = self.last_stable_offset if committed_only else self.high_watermark
        diverging = self._diverging(wanted)
        if diverging is not None:
            return self._fetched([], 0, None, diverging)
        if wanted.fetch_offset > log.end_offset or wanted.fetch_offset < log.start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: offset {wanted.fetch_offset} is outside {log.start_offset} to {log.end_offset}",
            )
        if wanted.fetch_offset >= limit or (max_bytes <= 0 and not min_one):
            return self._fetched([], 0, [] if committed_only else None, None)
        slices = log.read(wanted.fetch_offset, max_bytes, limit_offset=limit, min_one=min_one)
        size = sum(piece.length for piece in slices)
        aborted = log.aborted_transactions(wanted.fetch_offset, limit) if committed_only else None
        return self._fetched(slices, size, aborted, None)

    def _fetched(
        self,
        slices: list[Slice],
        size: int,
        aborted: list[AbortedTransaction] | None,
        diverging: tuple[int, int] | None,
    ) -> Fetched:
        return Fetched(
            slices, size, self.high_watermark, self.last_stable_offset, self.log.start_offset, aborted, diverging
        )

    def _diverging(self, wanted: FetchPartition) -> tuple[int, int] | None:
        if wanted.last_fetched_epoch < 0:
            return None
        epoch, end = self.log.epoch_end(wanted.last_fetched_epoch)
        if epoch < wanted.last_fetched_epoch or end < wanted.fetch_offset:
            return (epoch, end)
        return None

    def check(self) -> None:
        assert self.log.start_offset <= self.high_watermark <= self.log.end_offset
