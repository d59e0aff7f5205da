"""Raw batches to Arrow, with `records` as the oracle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.columnar.decode import Decoder
from penstock.columnar.schema import ALL_COLUMNS, RECORD_SCHEMA
from penstock.records.batch import LOG_APPEND_TIME, Codec, patch_append_time, read_header
from penstock.records.builder import build_batch, build_empty_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record, read_records

EVERYTHING = 2**62
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

texts = st.text(max_size=6)
blobs = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(texts, blobs), max_size=3).map(tuple)
records = st.builds(Record.of, blobs, blobs, st.integers(-1, 2**45), headers)
batches = st.lists(
    st.tuples(st.lists(records, min_size=1, max_size=12), st.sampled_from(list(Codec)), st.sampled_from([0, 1])),
    min_size=1,
    max_size=5,
)


def joined(parts: list[tuple[list[Record], Codec, int]]) -> bytes:
    raw, offset = bytearray(), 0
    for content, codec, timestamp_type in parts:
        raw += build_batch(content, base_offset=offset, codec=codec, timestamp_type=timestamp_type)
        offset += len(content)
    return bytes(raw)


def expected_rows(raw: bytes, start: int = 0, end: int = EVERYTHING) -> list[dict[str, object]]:
    rows, at = [], 0
    while at < len(raw):
        header = read_header(raw, at)
        for record in read_records(raw, at=at):
            if start <= record.offset < end:
                rows.append(_row(record, header.timestamp_type))
        at += header.size_bytes
    return rows


def _row(record: Record, timestamp_type: int) -> dict[str, object]:
    return {
        "key": record.key,
        "value": record.value,
        "topic": "words",
        "partition": 3,
        "offset": record.offset,
        "timestamp": EPOCH + timedelta(milliseconds=record.timestamp),
        "timestampType": timestamp_type,
        "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
    }


def rows_of(found: list[pa.RecordBatch]) -> list[dict[str, object]]:
    for batch in found:
        batch.validate(full=True)
    return [row for batch in found for row in batch.to_pylist()]


def some(count: int, **arguments: object) -> bytearray:
    return build_batch([Record.of(b"k%d" % n, b"v%d" % n, 1000 + n) for n in range(count)], **arguments)  # type: ignore[arg-type]  # passed on


@given(batches, st.integers(-2, 60), st.integers(-2, 60))
@settings(deadline=None)
def test_rows_equal_those_of_the_record_reader(parts, start, end):
    raw = joined(parts)
    found = Decoder("words", 3, ALL_COLUMNS).decode(raw, start, end)
    assert rows_of([found] if found else []) == expected_rows(raw, start, end)
    assert found is None or found.schema == RECORD_SCHEMA(True)


@given(batches, st.integers(1, 7), st.integers(0, 60))
@settings(max_examples=50, deadline=None)
def test_pieces_are_bounded_and_add_up_to_the_whole(parts, batch_rows, batch_bytes):
    raw = joined(parts)
    decoder = Decoder("words", 3, ALL_COLUMNS)
    pieces = list(decoder.decode_many(raw, 0, EVERYTHING, batch_rows=batch_rows, batch_bytes=batch_bytes))
    assert rows_of(pieces) == expected_rows(raw)
    for piece in pieces:
        assert piece.num_rows <= batch_rows
        assert piece.num_rows == 1 or sum(len(r["key"] or b"") + len(r["value"] or b"") for r in piece.to_pylist()) <= (
            batch_bytes
        )


def test_only_wanted_columns_are_there_in_the_order_of_the_schema():
    found = Decoder("words", 3, {"offset", "key"}).decode(some(2), 0, 2)
    assert found is not None
    assert found.to_pydict() == {"key": [b"k0", b"k1"], "offset": [0, 1]}


def test_no_column_at_all_still_counts_rows():
    found = Decoder("words", 3, ()).decode(some(5), 1, 5)
    assert found is not None and (found.num_rows, found.num_columns) == (4, 0)


def test_an_unknown_column_is_refused_by_name():
    with pytest.raises(ValueError, match="there is no column 'valeu'"):
        Decoder("words", 3, {"valeu"})


def test_append_time_is_the_time_of_every_record():
    raw = some(2, timestamp_type=LOG_APPEND_TIME)
    patch_append_time(raw, 0, len(raw), 5000)
    found = Decoder("words", 3, {"timestamp", "timestampType"}).decode(raw, 0, 2)
    assert found is not None
    assert found.to_pydict() == {"timestamp": [EPOCH + timedelta(seconds=5)] * 2, "timestampType": [1, 1]}


def test_a_time_beyond_microseconds_in_64_bits_is_the_last_there_is():
    raw = build_batch([Record.of(None, None, 2**60)])
    found = Decoder("words", 3, {"timestamp"}).decode(raw, 0, 1)
    assert found is not None
    assert found.column(0).cast(pa.int64()).to_pylist() == [2**63 - 1]


def test_header_keys_that_are_no_text_are_mended():
    raw = build_batch([Record.of(b"k", b"v", 0, (("caf\udce9", b"x"),))])
    found = Decoder("words", 3, {"headers"}).decode(raw, 0, 1)
    assert found is not None
    assert found.to_pylist() == [{"headers": [{"key": "caf\ufffd", "value": b"x"}]}]


def test_control_batches_and_batches_without_records_are_passed_over():
    marker = build_end_marker(EndMarker(True, 0), producer_id=7, producer_epoch=0, timestamp=0, base_offset=2)
    empty = build_empty_batch(read_header(some(3, base_offset=3)))
    raw = some(2) + marker + empty + some(1, base_offset=6)
    found = Decoder("words", 3, {"offset"}).decode(raw, 0, EVERYTHING)
    assert found is not None and found.to_pydict() == {"offset": [0, 1, 6]}


def _transactional(producer_id: int, offset: int, count: int = 1) -> bytearray:
    return some(
        count, base_offset=offset, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def _marker(producer_id: int, offset: int, committed: bool) -> bytearray:
    marker = EndMarker(committed, 0)
    return build_end_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=0, base_offset=offset)


ABORTED_AND_NOT = (
    _transactional(1, 0)
    + _transactional(2, 1)
    + some(1, base_offset=2)
    + _marker(1, 3, committed=False)
    + _transactional(1, 4)
    + _marker(2, 5, committed=True)
    + _marker(1, 6, committed=True)
)


def test_aborted_transactions_end_at_their_marker():
    found = Decoder("words", 3, {"offset"}).decode(ABORTED_AND_NOT, 0, EVERYTHING, [(1, 0)])
    assert found is not None and found.to_pydict() == {"offset": [1, 2, 4]}


def test_a_reader_of_uncommitted_records_sees_aborted_ones():
    decoder = Decoder("words", 3, {"offset"}, committed_only=False)
    found = decoder.decode(ABORTED_AND_NOT, 0, EVERYTHING, [(1, 0)])
    assert found is not None and found.to_pydict() == {"offset": [0, 1, 2, 4]}


def test_a_flipped_bit_is_told_with_topic_partition_and_offset():
    raw = some(2) + some(2, base_offset=2)
    raw[-1] ^= 1
    with pytest.raises(
        KafkaError, match=r"topic words partition 3: the batch at offset 2 is corrupt: .*checksum"
    ) as caught:
        Decoder("words", 3).decode(raw, 0, 4)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_flipped_bit_outside_of_the_range_is_told_too():
    raw = some(2) + some(2, base_offset=2)
    raw[30] ^= 1
    with pytest.raises(KafkaError, match="offset 0 is corrupt"):
        Decoder("words", 3).decode(raw, 2, 4)


@pytest.mark.parametrize("size", [1, 16, 60, 70])
def test_a_batch_that_is_cut_off_is_told(size):
    with pytest.raises(KafkaError, match="topic words partition 3: the batch at byte 0 is cut off"):
        Decoder("words", 3).decode(some(2)[:size], 0, 2)


def test_formats_before_v2_are_refused_with_the_partition():
    raw = some(1)
    raw[16] = 1
    with pytest.raises(KafkaError, match=r"topic words partition 3: .*message format v1"):
        Decoder("words", 3).decode(raw, 0, 1)


def test_a_bomb_costs_no_more_than_its_budget():
    raw = build_batch([Record.of(None, bytes(1_000_000))], codec=Codec.GZIP)
    decoder = Decoder("words", 3, expanded_bytes_max=10_000)
    with pytest.raises(KafkaError, match=r"topic words partition 3: the batch at offset 0: .*more than 10000 bytes"):
        decoder.decode(raw, 0, 1)
