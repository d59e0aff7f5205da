"""Batch by batch: what stays of a compacted log. A batch goes in, the same or a smaller one comes out, or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from penstock.base.ports import Buffer
from penstock.core.log.compaction_map import DIGEST_BYTES, OffsetMap, name_of
from penstock.core.log.compaction_transactions import Transactions
from penstock.records.batch import DELETE_HORIZON_BIT, LOG_APPEND_TIME_BIT, BatchHeader
from penstock.records.builder import append_varint, build_empty_batch, seal
from penstock.records.compression import compress
from penstock.records.record import Span, payload, scan


class LiveProducer(NamedTuple):
    """What the log still knows of a producer when a pass begins."""

    last_data_offset: int | None
    """of the last record in its last batch, None where all it has is markers."""
    epoch: int


class Cleaner:
    """One pass over one log. Feed it every batch from the log's start, in order."""

    __slots__ = ("_budget_bytes", "_delete_horizon_ms", "_map", "_now_ms", "_producers", "transactions")

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: Transactions,
        producers: Mapping[int, LiveProducer],
        *,
        now_ms: int,
        delete_retention_ms: int,
        budget_bytes: int,
    ) -> None:
        self._map = offset_map
        self.transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._delete_horizon_ms = now_ms + delete_retention_ms
        self._budget_bytes = budget_bytes

    def clean(self, header: BatchHeader, raw: Buffer) -> Buffer | None:
        """What to write for this batch: itself where nothing changes, None where nothing is left."""
        if header.is_control:
            superfluous = self.transactions.on_control(header, raw)
        else:
            superfluous = self.transactions.on_records(header)
        if header.base_offset >= self._map.end_offset:
            return raw
        if header.records_count == 0:
            return raw if self._is_last_of_producer(header) else None
        if header.is_control:
            return self._clean_control(header, raw) if superfluous else raw
        return self._nothing_left(header) if superfluous else self._clean_records(header, raw)

    def _clean_control(self, header: BatchHeader, raw: Buffer) -> Buffer | None:
        """A marker without a transaction stays until its horizon, which the first pass to see it alone sets."""
        horizon = header.delete_horizon_ms
        if horizon is None:
            data = payload(raw)
            return self._rebuild(header, data, list(scan(data, 0, len(data), header.records_count)), True)
        return raw if self._now_ms < horizon else self._nothing_left(header)

    def _clean_records(self, header: BatchHeader, raw: Buffer) -> Buffer | None:
        horizon = header.delete_horizon_ms
        expired = horizon is not None and self._now_ms >= horizon
        latest, base = self._map.offsets.get, header.base_offset
        data = payload(raw, budget_bytes=self._budget_bytes)
        kept: list[Span] = []
        tombstones = False
        for span in scan(data, 0, len(data), header.records_count):
            _, _, _, _, delta, _, key_at, key_size, _, value_size, _, _ = span
            if key_size < 0:
                continue
            key = data[key_at : key_at + key_size]
            if base + delta < latest(key if key_size < DIGEST_BYTES else name_of(key), -1):
                continue
            if value_size < 0:
                if expired:
                    continue
                tombstones = True
            kept.append(span)
        if not kept:
            return self._nothing_left(header)
        needs_horizon = tombstones and horizon is None
        if len(kept) == header.records_count and not needs_horizon:
            return raw
        return self._rebuild(header, data, kept, needs_horizon)

    def _rebuild(self, header: BatchHeader, data: bytes, kept: list[Span], needs_horizon: bool) -> bytearray:
        """The batch with these records only. Offsets, sequences and the last offset stay; with a delete horizon, which
        takes the base timestamp's place, every record's time is told against that."""
        attributes, base_timestamp = header.attributes, header.base_timestamp
        if needs_horizon:
            attributes |= DELETE_HORIZON_BIT
            base_timestamp = self._delete_horizon_ms
            packed = b"".join(_restamped(data, span, header.base_timestamp - base_timestamp) for span in kept)
        else:
            packed = b"".join(data[span.start : span.stop] for span in kept)
        max_timestamp = header.max_timestamp
        if not attributes & LOG_APPEND_TIME_BIT:
            max_timestamp = header.base_timestamp + max(span.timestamp_delta for span in kept)
        smaller = header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            records_count=len(kept),
        )
        return seal(smaller, compress(header.codec, packed))

    def _nothing_left(self, header: BatchHeader) -> bytearray | None:
        return build_empty_batch(header) if self._is_last_of_producer(header) else None

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """By offset, never by sequence: coordinators send every batch with the same one (KAFKA-8335)."""
        producer = self._producers.get(header.producer_id) if header.has_producer_id else None
        if producer is None:
            return False
        if producer.last_data_offset is None:
            return header.is_control and header.producer_epoch == producer.epoch
        return header.last_offset == producer.last_data_offset


def clean(cleaner: Cleaner, batches: Iterable[tuple[BatchHeader, Buffer]]) -> Iterator[tuple[Buffer, bool]]:
    """What one new segment is made of, each with whether it differs from what was read.

    The last batch stays even if nothing is left in it: so the segment tells where it ends, and after a crash it is
    known which old ones it replaces."""
    last: BatchHeader | None = None
    for header, raw in batches:
        out = cleaner.clean(header, raw)
        if out is not None:
            yield out, out is not raw
        last = header if out is None else None
    if last is not None:
        yield build_empty_batch(last), last.records_count > 0


def _restamped(data: bytes, span: Span, shift_ms: int) -> bytes:
    body = bytearray(data[span.body : span.body + 1])
    append_varint(body, span.timestamp_delta + shift_ms)
    body += data[span.offset_delta_at : span.stop]
    out = bytearray()
    append_varint(out, len(body))
    return bytes(out + body)
