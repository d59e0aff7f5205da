"""Arrow to record batches of format v2, and the partition of each key."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.base.errors import ErrorCode, KafkaError
from penstock.columnar import encode_kernels as kernels
from penstock.columnar.buffers import uninitialized
from penstock.columnar.cells import Records, binary_column, records_of
from penstock.records.batch import (
    FRAME_BYTES,
    HEADER_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    SEQUENCE_MAX,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Codec,
    write_crc,
    write_header,
)
from penstock.records.builder import seal
from penstock.records.compression import compress

BATCH_BYTES = 786_432
"""bytes of a batch before compression; brokers take 1 MiB after it, unless a topic says otherwise. Rows that are handed
in by 2 MB have half a MiB for each of four partitions, more or less: that is one batch, without a small one behind."""
BATCH_RECORDS = 100_000
LENGTH_MAX = 2**31 - 1

_PLANNED_AT_ONCE = 256


def partition_of(keys: pa.Array, count: int) -> npt.NDArray[np.int32]:
    """The partition among `count` that Kafka's default partitioner gives each key; -1 for null keys."""
    assert count > 0
    partitions = np.full(len(keys), -1, np.int32)
    kernels.hash_keys(binary_column(keys, "key"), count, partitions)
    return partitions


def encode(
    batch: pa.RecordBatch,
    *,
    now_ms: int,
    codec: int = Codec.NONE,
    level: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    batch_records: int = BATCH_RECORDS,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
) -> list[bytearray | memoryview]:
    """The rows of one partition as batches: columns value, and where there are any key, headers and timestamp."""
    batches = Encoder(codec, level, batch_bytes, batch_records).batches(
        records_of(batch, now_ms), None, producer_id, producer_epoch, base_sequence, transactional
    )
    return [data for data, _ in batches]


class Encoder:
    def __init__(
        self,
        codec: int = Codec.NONE,
        level: int | None = None,
        batch_bytes: int = BATCH_BYTES,
        batch_records: int = BATCH_RECORDS,
        sums: bool = True,
    ) -> None:
        """`sums`: with a CRC; a producer that numbers its batches computes it again, over what it wrote into them."""
        self._sums = sums
        self._codec = codec
        self._level = level
        self.batch_bytes = batch_bytes
        self._batch_records = batch_records

    def batches(
        self,
        records: Records,
        rows: npt.NDArray[np.int64] | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
    ) -> Iterator[tuple[bytearray | memoryview, int]]:
        """These rows, or all, in their order, as batches with their number of records."""
        rows = np.arange(records.rows) if rows is None else rows
        attributes = self._codec | (TRANSACTIONAL_BIT if transactional else 0)
        sizes = np.empty(len(rows), np.int64)
        for first, last, size, max_timestamp in self._plan(records, rows, sizes):
            header = BatchHeader(
                base_offset=0,
                length=HEADER_BYTES + size - FRAME_BYTES,
                leader_epoch=NO_LEADER_EPOCH,
                magic=MAGIC,
                crc=0,
                attributes=attributes,
                last_offset_delta=last - first - 1,
                base_timestamp=int(records.timestamps[rows[first]]),
                max_timestamp=max_timestamp,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                records_count=last - first,
            )
            yield self._batch(header, records, rows, sizes, first, last), last - first
            if base_sequence != NO_SEQUENCE:
                base_sequence = (base_sequence + last - first) & SEQUENCE_MAX

    def _plan(
        self, records: Records, rows: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, int, int, int]]:
        """First row, end, bytes of records and latest time of each batch."""
        plan = np.empty((_PLANNED_AT_ONCE, kernels.PLAN_COLUMNS), np.int64)
        first = 0
        while first < len(rows):
            count = kernels.plan_batches(
                rows,
                first,
                records.keys,
                records.values,
                records.headers,
                records.header_keys,
                records.header_values,
                records.timestamps,
                self.batch_bytes - HEADER_BYTES,
                self._batch_records,
                sizes,
                plan,
            )
            for begin, first, size, max_timestamp in plan[:count].tolist():
                if HEADER_BYTES + size - FRAME_BYTES > LENGTH_MAX:
                    raise KafkaError(
                        ErrorCode.MESSAGE_TOO_LARGE, f"a record of {size} bytes; a batch has at most 2 GiB"
                    )
                yield begin, first, size, max_timestamp

    def _batch(
        self,
        header: BatchHeader,
        records: Records,
        rows: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        first: int,
        last: int,
    ) -> bytearray | memoryview:
        out = uninitialized(header.size_bytes)
        kernels.write_records(
            rows,
            first,
            last,
            records.keys,
            records.values,
            records.headers,
            records.header_keys,
            records.header_values,
            records.timestamps,
            sizes,
            np.frombuffer(out, np.uint8),
            HEADER_BYTES,
        )
        if self._codec != Codec.NONE:
            return seal(header, compress(self._codec, out[HEADER_BYTES:], self._level))
        write_header(out, 0, header)
        if self._sums:
            write_crc(out, 0, len(out))
        return out
