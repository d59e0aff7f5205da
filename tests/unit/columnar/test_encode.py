"""Arrow to batches, with `records` as the oracle, and the partition of each key."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.columnar.cells import records_of
from penstock.columnar.decode import Decoder
from penstock.columnar.encode import Encoder, encode, partition_of
from penstock.columnar.schema import HEADERS_TYPE
from penstock.records.batch import SEQUENCE_MAX, Codec, check_crc, patch, read_header
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records
from penstock.wire.partitioners import partition_of_key

NOW_MS = 1_700_000_000_000

blobs = st.none() | st.binary(max_size=300)
headers = st.lists(st.tuples(st.text(max_size=5), blobs), max_size=3).map(tuple)
records = st.builds(Record.of, blobs, blobs, st.integers(-(2**61), 2**61), headers)


def table(content: list[Record]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.key for record in content], pa.binary()),
            pa.array([record.value for record in content], pa.binary()),
            pa.array([list(record.headers) or None for record in content], HEADERS_TYPE),
            pa.array([record.timestamp for record in content], pa.int64()),
        ],
        ["key", "value", "headers", "timestamp"],
    )


def plain(content: list[Record]) -> list[tuple[object, ...]]:
    return [tuple(record)[1:] for record in content]


@given(st.lists(records, min_size=1, max_size=20))
@settings(deadline=None)
def test_a_batch_is_to_the_byte_what_the_builder_makes(content):
    assert encode(table(content), now_ms=0) == [build_batch(content)]


@given(st.lists(records, min_size=1, max_size=20), st.data())
@settings(deadline=None)
def test_slices_of_columns_are_encoded_as_themselves(content, data):
    first = data.draw(st.integers(0, len(content) - 1))
    assert encode(table(content).slice(first), now_ms=0) == [build_batch(content[first:])]


@given(st.lists(records, min_size=1, max_size=30), st.integers(61, 800), st.integers(1, 10), st.sampled_from(Codec))
@settings(deadline=None)
def test_batches_are_bounded_and_read_back_as_the_rows(content, batch_bytes, batch_records, codec):
    found = encode(table(content), now_ms=0, codec=codec, batch_bytes=batch_bytes, batch_records=batch_records)
    assert [row for data in found for row in plain(read_records(data))] == plain(content)
    for data in found:
        header = read_header(data)
        assert check_crc(data, 0, len(data)) and header.size_bytes == len(data) and header.codec == codec
        assert header.records_count <= batch_records
        assert header.records_count == 1 or codec != Codec.NONE or len(data) <= batch_bytes
        assert header.max_timestamp == max(record.timestamp for record in read_records(data))


@pytest.mark.parametrize(("rows", "size"), [(5_000, 100), (550, 1_000)])
def test_a_quarter_of_the_rows_that_spark_hands_over_is_one_batch(rows, size):
    """A small batch behind a full one would cost as much as the full one."""
    batch = pa.RecordBatch.from_pydict({"key": [b"key-%d" % n for n in range(rows)], "value": [bytes(size)] * rows})
    assert len(encode(batch, now_ms=0)) == 1


@given(st.lists(records, min_size=2, max_size=20), st.randoms())
@settings(deadline=None)
def test_chosen_rows_are_encoded_in_the_order_chosen(content, chance):
    rows = [row for row in range(len(content)) if chance.random() < 0.5] or [0]
    chance.shuffle(rows)
    ((data, count),) = Encoder().batches(records_of(table(content), 0), np.array(rows))
    assert count == len(rows)
    assert plain(read_records(data)) == plain([content[row] for row in rows])


def test_what_is_encoded_decodes_to_the_same_columns():
    rows = table([Record.of(b"k%d" % n if n % 3 else None, b"v" * n, NOW_MS + n) for n in range(1000)])
    raw, offset = bytearray(), 0
    for data in encode(rows, now_ms=0, batch_bytes=5000, codec=Codec.LZ4):
        patch(data, 0, offset, 0)
        offset += read_header(data).records_count
        raw += data
    found = Decoder("t", 0, {"key", "value"}).decode(raw, 0, offset)
    assert found is not None and found.equals(rows.select(["key", "value"]))


def test_producer_fields_and_sequences_are_written_and_wrap():
    rows = table([Record.of(None, b"v", 0)] * 4)
    found = encode(
        rows, now_ms=0, batch_records=2, producer_id=9, producer_epoch=3, base_sequence=SEQUENCE_MAX, transactional=True
    )
    assert [
        (h.producer_id, h.producer_epoch, h.base_sequence, h.is_transactional) for h in map(read_header, found)
    ] == [
        (9, 3, SEQUENCE_MAX, True),
        (9, 3, 1, True),
    ]


def test_only_a_value_is_needed_and_the_time_is_now():
    (data,) = encode(pa.RecordBatch.from_pydict({"value": ["a", None]}), now_ms=NOW_MS)
    assert read_records(data) == [Record(0, NOW_MS, None, b"a"), Record(1, NOW_MS, None, None)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_any_unit_become_milliseconds(unit):
    at = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    rows = pa.RecordBatch.from_arrays(
        [pa.array([b"a", b"b"]), pa.array([at, None], pa.timestamp(unit, "UTC"))], ["value", "timestamp"]
    )
    (data,) = encode(rows, now_ms=NOW_MS)
    assert [record.timestamp for record in read_records(data)] == [int(at.timestamp()) * 1000, NOW_MS]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary_view(), pa.string_view(), pa.binary(2)]
)
def test_bytes_and_texts_of_any_layout_are_values(kind):
    rows = pa.RecordBatch.from_arrays([pa.array([b"ab", None], pa.binary()).cast(kind)], ["value"])
    (data,) = encode(rows, now_ms=0)
    assert [record.value for record in read_records(data)] == [b"ab", None]


def test_a_column_of_another_type_is_refused_by_name():
    with pytest.raises(TypeError, match="the column value is binary or string, not int64"):
        encode(pa.RecordBatch.from_pydict({"value": [1]}), now_ms=0)


def test_rows_without_a_value_column_are_refused():
    with pytest.raises(ValueError, match="there is no column 'value' among key"):
        encode(pa.RecordBatch.from_pydict({"key": [b"k"]}), now_ms=0)


def test_a_header_without_a_key_is_refused():
    rows = pa.RecordBatch.from_arrays(
        [pa.array([b"v"]), pa.array([[(None, b"x")]], HEADERS_TYPE)], ["value", "headers"]
    )
    with pytest.raises(ValueError, match="a header's key is null"):
        encode(rows, now_ms=0)


@given(st.lists(blobs, max_size=30), st.integers(1, 100))
@settings(deadline=None)
def test_a_key_goes_where_kafkas_default_partitioner_sends_it(keys, count):
    expected = [-1 if key is None else partition_of_key(key, count) for key in keys]
    assert partition_of(pa.array(keys, pa.binary()), count).tolist() == expected
