"""Raw batches of one partition, as a broker keeps them, to Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.columnar import columns
from penstock.columnar import record_kernels as kernels
from penstock.columnar.schema import COLUMNS, schema_of
from penstock.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    Codec,
    batch_size,
    crc_of,
)
from penstock.records.compression import decompress
from penstock.records.control import read_end_marker

BATCH_ROWS = 131_072
BATCH_BYTES = 33_554_432
"""bytes of keys and values in one record batch; the offsets of a binary column could count to 2 GiB."""
BATCH_BYTES_MAX = 2**31 - 1
RAW_BYTES_MAX = 2**31 - 1
PORTION_BYTES = 33_554_432
"""bytes of expanded batches that are held at a time, if a single one is not larger."""

Aborted = Iterable[tuple[int, int]]
"""producer id and first offset of each aborted transaction, as a broker lists them."""

Table = npt.NDArray[np.int64]


class Portion(NamedTuple):
    """Batches whose records lie in one buffer."""

    buf: npt.NDArray[np.uint8]
    segments: Table
    headers: Table


class Decoder:
    """Decodes batches of one partition. It keeps nothing between calls but columns that are the same in every row."""

    def __init__(
        self,
        topic: str,
        partition: int,
        wanted: Iterable[str] = COLUMNS,
        *,
        committed_only: bool = True,
        expanded_bytes_max: int = UNCOMPRESSED_BATCH_BYTES_MAX,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.schema = schema_of(wanted)
        self._committed_only = committed_only
        self._expanded_bytes_max = min(expanded_bytes_max, RAW_BYTES_MAX - PORTION_BYTES)
        self._constants = columns.Constants()

    def decode(self, raw: Buffer, start_offset: int, end_offset: int, aborted: Aborted = ()) -> pa.RecordBatch | None:
        """All records with offsets in [start_offset, end_offset) in one record batch; None where there are none."""
        found = list(
            self.decode_many(raw, start_offset, end_offset, aborted, batch_rows=2**31, batch_bytes=BATCH_BYTES_MAX)
        )
        if not found:
            return None
        return found[0] if len(found) == 1 else pa.concat_batches(found)

    def decode_many(
        self,
        raw: Buffer,
        start_offset: int,
        end_offset: int,
        aborted: Aborted = (),
        *,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """The same in record batches of at most so many rows, and so many bytes of keys and values, or one row."""
        assert batch_rows > 0 and batch_bytes <= BATCH_BYTES_MAX
        view = memoryview(raw).cast("B")
        assert len(view) <= RAW_BYTES_MAX, "positions in a buffer are kept in 32 bits"
        headers = self._visible(view, self._headers(view), aborted)
        headers = headers[
            (headers[:, kernels.LAST_OFFSET] >= start_offset) & (headers[:, kernels.BASE_OFFSET] < end_offset)
        ]
        batch_rows = min(batch_rows, BATCH_BYTES_MAX // len(self.topic.encode()))  # for the column of the topic's name
        for portion in self._portions(view, headers):
            yield from self._rows(portion, start_offset, end_offset, batch_rows, batch_bytes)

    def _headers(self, view: memoryview) -> Table:
        """Every batch's header; all are whole and have the right CRC."""
        buf = np.frombuffer(view, np.uint8)
        count = kernels.count_batches(buf)
        if count < 0:
            raise self._no_batch(view, -1 - count)
        headers = np.empty((count, kernels.HEADER_COLUMNS), np.int64)
        kernels.read_headers(buf, headers)
        for at, size, offset, crc in headers[:, (kernels.AT, kernels.SIZE, kernels.BASE_OFFSET, kernels.CRC)].tolist():
            if crc_of(view, at, size) != crc:
                raise self._corrupt(offset, "its bytes do not match its checksum (CRC-32C)")
        return headers

    def _visible(self, view: memoryview, headers: Table, aborted: Aborted) -> Table:
        """Without control batches and, where only committed records are wanted, without aborted transactions."""
        attributes = headers[:, kernels.ATTRIBUTES]
        keep = attributes & CONTROL_BIT == 0
        pending = sorted(aborted, key=lambda one: one[1], reverse=True) if self._committed_only else []
        if pending:
            doomed: set[int] = set()
            for row in np.flatnonzero(attributes & (CONTROL_BIT | TRANSACTIONAL_BIT)).tolist():
                at, last, producer_id = headers[row, (kernels.AT, kernels.LAST_OFFSET, kernels.PRODUCER_ID)].tolist()
                while pending and pending[-1][1] <= last:
                    doomed.add(pending.pop()[0])
                if keep[row]:
                    keep[row] = producer_id not in doomed
                elif producer_id in doomed:
                    marker = read_end_marker(view, at)
                    if marker is not None and not marker.committed:
                        doomed.discard(producer_id)
        return headers if keep.all() else headers[keep]

    def _portions(self, view: memoryview, headers: Table) -> Iterator[Portion]:
        """Where nothing is compressed, one portion that is the buffer itself."""
        if not len(headers):
            return
        codecs = headers[:, kernels.ATTRIBUTES] & CODEC_MASK
        if not codecs.any():
            segments = self._segments(headers)
            segments[:, kernels.SEGMENT_AT] = headers[:, kernels.AT] + HEADER_BYTES
            segments[:, kernels.SEGMENT_END] = headers[:, kernels.AT] + headers[:, kernels.SIZE]
            yield Portion(np.frombuffer(view, np.uint8), segments, headers)
            return
        parts: list[bytes] = []
        first = size = 0
        for row in range(len(headers)):
            part = self._expand(view, headers[row])
            if parts and size + len(part) > PORTION_BYTES:
                yield self._joined(parts, headers[first:row])
                parts, first, size = [], row, 0
            parts.append(part)
            size += len(part)
        yield self._joined(parts, headers[first:])

    def _segments(self, headers: Table) -> Table:
        segments = np.empty((len(headers), kernels.SEGMENT_COLUMNS), np.int64)
        append_time = headers[:, kernels.ATTRIBUTES] & LOG_APPEND_TIME_BIT != 0
        segments[:, kernels.SEGMENT_COUNT] = headers[:, kernels.COUNT]
        segments[:, kernels.SEGMENT_OFFSET] = headers[:, kernels.BASE_OFFSET]
        segments[:, kernels.SEGMENT_APPEND_TIME] = append_time
        segments[:, kernels.SEGMENT_TIMESTAMP] = np.where(
            append_time, headers[:, kernels.MAX_TIMESTAMP], headers[:, kernels.BASE_TIMESTAMP]
        )
        return segments

    def _joined(self, parts: list[bytes], headers: Table) -> Portion:
        segments = self._segments(headers)
        ends = np.cumsum([len(part) for part in parts])
        segments[:, kernels.SEGMENT_END] = ends
        segments[1:, kernels.SEGMENT_AT] = ends[:-1]
        segments[0, kernels.SEGMENT_AT] = 0
        return Portion(np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8), segments, headers)

    def _expand(self, view: memoryview, header: Table) -> bytes:
        at, size, offset, count, attributes = header[
            [kernels.AT, kernels.SIZE, kernels.BASE_OFFSET, kernels.COUNT, kernels.ATTRIBUTES]
        ].tolist()
        packed = view[at + HEADER_BYTES : at + size]
        codec = attributes & CODEC_MASK
        if codec == Codec.NONE or (count == 0 and not packed):
            return bytes(packed)
        try:
            return decompress(codec, packed, self._expanded_bytes_max)
        except KafkaError as error:
            raise KafkaError(error.code, f"{self._place(offset)}: {error.message}") from None

    def _rows(
        self, portion: Portion, start_offset: int, end_offset: int, batch_rows: int, batch_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        segments = portion.segments
        claims = segments[:, kernels.SEGMENT_COUNT]
        room = (segments[:, kernels.SEGMENT_END] - segments[:, kernels.SEGMENT_AT]) // kernels.RECORD_BYTES_MIN
        liar = np.flatnonzero((claims < 0) | (claims > room))
        if liar.size:
            offset = int(portion.headers[liar[0], kernels.BASE_OFFSET])
            raise self._corrupt(offset, f"it claims {int(claims[liar[0]])} records, which its bytes cannot hold")
        capacity = int(claims.sum())
        index = np.empty((capacity, kernels.INDEX_COLUMNS), np.int32)
        offsets = np.empty(capacity, np.int64)
        timestamps = np.empty(capacity, np.int64)
        fault = np.zeros(3, np.int64)
        rows = kernels.index_records(portion.buf, segments, start_offset, end_offset, index, offsets, timestamps, fault)
        if rows < 0:
            problem, segment, place = fault.tolist()
            offset = int(portion.headers[segment, kernels.BASE_OFFSET])
            raise self._corrupt(offset, f"record {place} of it is malformed: {kernels.FAULTS[problem]}")
        types = self._timestamp_types(portion, offsets[:rows])
        first = 0
        while first < rows:
            filled = columns.Filling(portion.buf, index, offsets, timestamps, types, first)
            first = filled.measure(min(rows, first + batch_rows), batch_bytes)
            yield filled.record_batch(self.schema, self.topic, self.partition, self._constants)

    def _timestamp_types(self, portion: Portion, offsets: Table) -> int | npt.NDArray[np.int32]:
        """One for all rows, or one for each where the batches differ."""
        append_time = portion.segments[:, kernels.SEGMENT_APPEND_TIME].astype(np.int32)
        if (append_time == append_time[0]).all():
            return int(append_time[0])
        batches = np.searchsorted(portion.headers[:, kernels.LAST_OFFSET], offsets)
        return append_time[np.minimum(batches, len(append_time) - 1)]

    def _place(self, offset: int) -> str:
        return f"topic {self.topic} partition {self.partition}: the batch at offset {offset}"

    def _corrupt(self, offset: int, cause: str) -> KafkaError:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{self._place(offset)} is corrupt: {cause}. Read again; if it stays, read from another replica or go on "
            f"after this batch",
        )

    def _no_batch(self, view: memoryview, at: int) -> KafkaError:
        place = f"topic {self.topic} partition {self.partition}"
        try:
            batch_size(view, at, len(view))
        except KafkaError as error:
            return KafkaError(error.code, f"{place}: {error.message}")
        left = len(view) - at
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{place}: the batch at byte {at} is cut off after {left} bytes")
