"""Records inside a batch: what is read, what is refused, what a topic may have checked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import RECORD_ERRORS_MAX
from penstock.records.batch import HEADER_BYTES, Codec, patch_append_time, read_header
from penstock.records.builder import append_record, append_varint, build_batch, seal
from penstock.records.record import Record, RecordError, check_records, read_records, scan

TIMES = st.integers(-1, 2**62)
BYTES = st.none() | st.binary(max_size=300)
RECORD = st.builds(
    Record.of, BYTES, BYTES, TIMES, st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3).map(tuple)
)


def refused(payload: bytes, count: int = 1) -> str:
    """Why these bytes are not `count` records; they are looked at inside a larger buffer, as in a request."""
    with pytest.raises(KafkaError) as error:
        list(scan(b"<<" + payload + bytes(64), 2, 2 + len(payload), count))
    assert error.value.code == ErrorCode.INVALID_RECORD
    return error.value.message or ""


def record(*body: int, size: int | None = None) -> bytes:
    out = bytearray()
    append_varint(out, len(body) if size is None else size)
    return bytes(out) + bytes(body)


@given(records=st.lists(RECORD, min_size=1, max_size=20), codec=st.sampled_from(Codec), base=st.integers(0, 2**60))
def test_what_is_built_is_read_back(records: list[Record], codec: Codec, base: int) -> None:
    raw = build_batch(records, base_offset=base, codec=codec)
    assert read_records(raw) == [each._replace(offset=base + i) for i, each in enumerate(records)]


@given(records=st.lists(RECORD, min_size=1, max_size=5), at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused_but_never_anything_else(records: list[Record], at: int, byte: int) -> None:
    raw = build_batch(records)
    raw[HEADER_BYTES + at % (len(raw) - HEADER_BYTES)] = byte
    try:
        assert len(read_records(raw)) == len(records)
    except KafkaError as error:
        assert error.code == ErrorCode.INVALID_RECORD


def test_a_batch_is_read_where_it_lies_in_a_larger_buffer() -> None:
    first, second = build_batch([Record.of(b"a", b"1")]), build_batch([Record.of(b"b", b"2")], base_offset=1)
    assert read_records(memoryview(first + second), at=len(first)) == [Record(1, -1, b"b", b"2")]


def test_a_record_larger_than_the_batch() -> None:
    assert "where 6 bytes are left" in refused(record(0, 0, 0, 1, 1, 0, size=7))


def test_a_negative_record_size() -> None:
    assert "a size of -1" in refused(b"\x01" + bytes(6))


def test_a_key_beyond_the_record() -> None:
    assert "its size says" in refused(record(0, 0, 0, 20, 1, 0))


def test_leftovers_inside_a_record() -> None:
    assert "its parts take 6 bytes, its size says 7" in refused(record(0, 0, 0, 1, 1, 0, 0))


def test_leftovers_after_the_last_record() -> None:
    assert "2 bytes are left over" in refused(record(0, 0, 0, 1, 1, 0) + b"zz")


def test_fewer_records_than_the_header_counts() -> None:
    refused(record(0, 0, 0, 1, 1, 0), count=2)


def test_a_negative_count() -> None:
    assert "claims -1 records" in refused(b"", count=-1)


@pytest.mark.parametrize("count", [b"\x7e", b"\xfe\xff\xff\xff\x0f", b"\x01"])
def test_more_headers_than_bytes_or_fewer_than_none(count: bytes) -> None:
    assert "headers where" in refused(record(0, 0, 0, 1, 1, *count))


def test_a_null_header_key() -> None:
    assert "header key of size -1" in refused(record(0, 0, 0, 1, 1, 2, 1, 1))


def test_a_header_beyond_the_record() -> None:
    assert "beyond the record" in refused(record(0, 0, 0, 1, 1, 2, 2, 65, 60))


@pytest.mark.parametrize("varint", [b"\x80\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x1f"])
def test_an_over_long_varint(varint: bytes) -> None:
    assert "too long" in refused(record(0, 0, *varint, 1, 1, 0))
    assert "too long" in refused(varint + bytes(10))


def test_an_over_long_varlong() -> None:
    assert "too long" in refused(record(0, *[0x80] * 10, 0, 0, 1, 1, 0))
    assert "too long" in refused(record(0, *[0xFF] * 9, 2, 0, 1, 1, 0))


def test_an_expanded_batch_stays_within_its_budget() -> None:
    raw = build_batch([Record.of(None, bytes(100_000))], codec=Codec.ZSTD)
    with pytest.raises(KafkaError) as error:
        read_records(raw, 50_000)
    assert error.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_good_batch_has_no_errors_and_its_true_latest_time() -> None:
    raw = build_batch([Record.of(b"a", b"", 7), Record.of(b"b", b"", 9), Record.of(b"c", b"", 8)])
    assert check_records(raw, keyed=True, earliest_ms=7, latest_ms=9) == ([], 9)


def test_records_without_a_key_are_named_where_keys_are_needed() -> None:
    raw = build_batch([Record.of(b"a", b""), Record.of(None, b""), Record.of(b"", b""), Record.of(None, None)])
    assert [error.batch_index for error in check_records(raw, keyed=True).errors] == [1, 3]
    assert check_records(raw).errors == []


@pytest.mark.parametrize("codec", list(Codec))
def test_times_out_of_bounds_are_named(codec: Codec) -> None:
    raw = build_batch([Record.of(b"a", b"", time) for time in (100, 99, 200, 201, -1)], codec=codec)
    errors = check_records(raw, earliest_ms=100, latest_ms=200).errors
    assert [(error.batch_index, error.code) for error in errors] == [
        (1, ErrorCode.INVALID_TIMESTAMP),
        (3, ErrorCode.INVALID_TIMESTAMP),
    ]


def test_bounds_do_not_hold_for_log_append_time() -> None:
    raw = build_batch([Record.of(b"a", b"", 5)])
    patch_append_time(raw, 0, len(raw), 1_000)
    assert check_records(raw, earliest_ms=900, latest_ms=1_100) == ([], 1_000)


def test_offset_deltas_count_up_from_zero() -> None:
    out = bytearray()
    for delta in (0, 2, 1):
        append_record(out, delta, 0, b"k", b"v")
    raw = seal(read_header(build_batch([Record.of(b"k", b"v")] * 3)), out)
    assert check_records(raw).errors == [
        RecordError(1, ErrorCode.INVALID_RECORD, "its offset delta is 2, its place 1"),
        RecordError(2, ErrorCode.INVALID_RECORD, "its offset delta is 1, its place 2"),
    ]


def test_a_batch_full_of_errors_is_answered_with_a_bounded_list() -> None:
    raw = build_batch([Record.of(None, b"")] * (2 * RECORD_ERRORS_MAX))
    assert len(check_records(raw, keyed=True).errors) == RECORD_ERRORS_MAX
