"""The v2 header: what is read, what is patched, what is refused."""

from __future__ import annotations

import struct

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records import batch


def made(count: int = 3, *, producer_id: int = -1, sequence: int = -1, transactional: bool = False) -> bytearray:
    builder = DefaultRecordBatchBuilder(2, 0, transactional, producer_id, 1, sequence, 1 << 20)
    for i in range(count):
        builder.append(i, 1000 + i, b"k%d" % i, b"v%d" % i, [])
    return bytearray(builder.build())


def test_the_header_of_a_foreign_batch_is_read_field_by_field() -> None:
    header = batch.read_header(made(3, producer_id=7, sequence=40, transactional=True))
    assert header.base_offset == 0
    assert header.magic == 2
    assert header.last_offset_delta == 2
    assert header.base_timestamp == 1000
    assert header.max_timestamp == 1002
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 40)
    assert header.records_count == 3
    assert header.is_transactional
    assert not header.is_control
    assert header.codec == batch.Codec.NONE
    assert header.last_sequence == 42


def test_size_counts_the_whole_batch() -> None:
    raw = made()
    assert batch.read_header(raw).size_bytes == len(raw)


def test_crc_holds_after_offset_and_epoch_are_patched() -> None:
    raw = made()
    batch.patch(raw, 0, base_offset=12345678901, leader_epoch=9)
    header = batch.read_header(raw)
    assert (header.base_offset, header.leader_epoch, header.last_offset) == (12345678901, 9, 12345678903)
    assert batch.check_crc(raw, 0, len(raw))
    assert DefaultRecordBatch(bytes(raw)).validate_crc()


@pytest.mark.parametrize("at", [21, 30, 60, 70])
def test_a_flipped_bit_fails_the_crc(at: int) -> None:
    raw = made()
    raw[at] ^= 1
    assert not batch.check_crc(raw, 0, len(raw))


def test_crc_is_checked_inside_a_larger_buffer() -> None:
    raw = made()
    view = memoryview(b"xyz" + raw + b"tail")
    assert batch.check_crc(view, 3, len(raw))


def test_append_time_makes_every_record_read_as_now() -> None:
    raw = made()
    batch.patch_append_time(raw, 0, len(raw), 5_000)
    foreign = DefaultRecordBatch(bytes(raw))
    assert foreign.validate_crc()
    assert [(record.timestamp, record.timestamp_type) for record in foreign] == [(5_000, 1)] * 3
    assert batch.read_header(raw).timestamp_type == batch.LOG_APPEND_TIME


def test_iterate_walks_batches_and_stops_before_a_torn_one() -> None:
    first, second = made(1), made(2)
    buf = bytes(first + second + made(3)[:-1])
    found = list(batch.iterate(buf))
    assert [(at, header.records_count) for at, header in found] == [(0, 1), (len(first), 2)]


@pytest.mark.parametrize("kept", [0, 5, 12, 16, 17, 60])
def test_a_piece_of_a_batch_is_torn_not_corrupt(kept: int) -> None:
    assert batch.batch_size(made()[:kept], 0, kept) == 0


def test_iterate_stays_inside_the_given_range() -> None:
    raw = made(1)
    buf = bytes(raw + raw + raw)
    assert [at for at, _ in batch.iterate(buf, len(raw), 2 * len(raw))] == [len(raw)]


@pytest.mark.parametrize(
    ("length", "magic", "code"),
    [
        (13, 2, ErrorCode.CORRUPT_MESSAGE),
        (-1, 2, ErrorCode.CORRUPT_MESSAGE),
        (48, 2, ErrorCode.CORRUPT_MESSAGE),
        (100, 3, ErrorCode.CORRUPT_MESSAGE),
        (100, -1, ErrorCode.CORRUPT_MESSAGE),
        (100, 0, ErrorCode.INVALID_RECORD),
        (100, 1, ErrorCode.INVALID_RECORD),
    ],
)
def test_bad_frames_get_their_exact_error(length: int, magic: int, code: ErrorCode) -> None:
    raw = made()
    struct.pack_into(">i", raw, batch.LENGTH_AT, length)
    struct.pack_into(">b", raw, batch.MAGIC_AT, magic)
    with pytest.raises(KafkaError) as refused:
        list(batch.iterate(raw))
    assert refused.value.code == code


def test_the_last_sequence_wraps_to_zero() -> None:
    header = batch.read_header(made(3))._replace(base_sequence=batch.SEQUENCE_MAX)
    assert header.last_sequence == 1


def test_delete_horizon_is_the_base_timestamp_once_marked() -> None:
    header = batch.read_header(made())
    assert header.delete_horizon_ms is None
    assert header._replace(attributes=batch.DELETE_HORIZON_BIT).delete_horizon_ms == 1000
