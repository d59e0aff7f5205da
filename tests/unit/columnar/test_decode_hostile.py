"""Bytes that claim what is not there: the kernels must refuse them as the record reader does, and read nothing beyond.

Each batch lies at the very end of a page behind which no page may be read: one byte too far is a crash, not a guess.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.base.errors import KafkaError
from penstock.columnar.decode import Decoder
from penstock.columnar.schema import ALL_COLUMNS
from penstock.records.batch import HEADER_BYTES, RECORDS_COUNT_AT, Codec, write_crc
from penstock.records.builder import build_batch, seal
from penstock.records.compression import compress
from penstock.records.record import Record, read_header, read_records

ROOM_BYTES = 4 * mmap.PAGESIZE
PROT_NONE = 0
PLAIN = bytes(
    build_batch(
        [
            Record.of(b"key", b"value", 1000, (("name", b"content"), ("empty", None))),
            Record.of(None, b"", 900),
            Record.of(b"", None, 2**40, (("", b""),)),
        ]
    )
)


@pytest.fixture(scope="module")
def cliff() -> Iterator[mmap.mmap]:
    """Memory that ends where its last page may not be touched."""
    memory = mmap.mmap(-1, ROOM_BYTES + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    last_page = ctypes.c_void_p(address + ROOM_BYTES)
    assert libc.mprotect(last_page, mmap.PAGESIZE, PROT_NONE) == 0
    yield memory
    assert libc.mprotect(last_page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def at_the_edge(cliff: mmap.mmap, raw: bytes) -> memoryview:
    cliff[ROOM_BYTES - len(raw) : ROOM_BYTES] = raw
    return memoryview(cliff)[ROOM_BYTES - len(raw) : ROOM_BYTES]


def outcome(raw: memoryview) -> list[tuple[object, ...]] | None:
    """What the kernels read; None where they refuse."""
    try:
        found = Decoder("words", 0, ALL_COLUMNS - {"timestamp"}).decode(raw, -(2**62), 2**62)
    except KafkaError as error:
        assert "topic words partition 0" in str(error)
        return None
    return [(r["offset"], r["key"], r["value"], r["headers"]) for r in (found.to_pylist() if found else [])]


def oracle(raw: bytes) -> list[tuple[object, ...]] | None:
    try:
        return [
            (r.offset, r.key, r.value, [{"key": _mended(k), "value": v} for k, v in r.headers] or None)
            for r in read_records(raw)
        ]
    except KafkaError:
        return None


def _mended(key: str) -> str:
    return key.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


edits = st.lists(st.tuples(st.integers(0, len(PLAIN) - HEADER_BYTES - 1), st.integers(0, 255)), min_size=1, max_size=6)


@given(edits, st.integers(0, 12))
@example([(0, 0xFF), (1, 0xFF), (2, 0xFF), (3, 0xFF), (4, 0x0F)], 0)
@settings(max_examples=1500, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_changed_bytes_are_read_as_the_record_reader_reads_them(cliff, changes, cut):
    raw = bytearray(PLAIN)
    for at, byte in changes:
        raw[HEADER_BYTES + at] = byte
    raw = bytearray(seal(read_header(raw), bytes(raw[HEADER_BYTES : len(raw) - cut])))
    assert outcome(at_the_edge(cliff, bytes(raw))) == oracle(bytes(raw))


@given(st.binary(max_size=200), st.integers(-3, 40))
@settings(max_examples=1000, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_are_read_as_the_record_reader_reads_them(cliff, records, count):
    raw = bytes(seal(read_header(PLAIN)._replace(records_count=count), records))
    assert outcome(at_the_edge(cliff, raw)) == oracle(raw)


@given(st.binary(max_size=300))
@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_bytes_that_are_no_batches_are_refused(cliff, data):
    assert outcome(at_the_edge(cliff, data)) == ([] if not data else None)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_malformed_records_inside_of_a_compressed_batch_are_refused(codec):
    packed = compress(codec, b"\xfe\xff\xff\xff\x0f" + bytes(20))
    raw = seal(read_header(PLAIN)._replace(attributes=codec), packed)
    with pytest.raises(KafkaError, match="record 0 of it is malformed: its size reaches beyond the batch"):
        Decoder("words", 0).decode(raw, 0, 10)


@pytest.mark.parametrize("count", [-1, 2**31 - 1, 1_000_000])
def test_a_count_that_the_bytes_cannot_hold_takes_no_memory(count):
    raw = bytearray(PLAIN)
    raw[RECORDS_COUNT_AT : RECORDS_COUNT_AT + 4] = count.to_bytes(4, "big", signed=True)
    write_crc(raw, 0, len(raw))
    with pytest.raises(KafkaError, match=f"it claims {count} records"):
        Decoder("words", 0).decode(raw, 0, 10)
