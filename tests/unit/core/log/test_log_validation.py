"""What a client may not send, with the code that Kafka answers."""

from __future__ import annotations

from random import Random
from struct import pack_into

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.log.validate import RecordsRefused
from penstock.records.batch import Codec, read_header, write_crc
from penstock.records.builder import build_batch
from penstock.records.record import Record, read_records
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000


def new_log(**config: object) -> Log:
    return Log.open(SimDisk(Random(1)), "t-0", LogConfig(**config), now_ms=NOW_MS)  # type: ignore[arg-type]  # test values


def batch(*records: Record, **fields: object) -> bytearray:
    return build_batch(list(records) or [Record.of(b"k", b"v", NOW_MS)], **fields)  # type: ignore[arg-type]  # test values


def changed(form: str, at: int, value: int) -> bytearray:
    """A batch with one field of its header overwritten, and a CRC to match."""
    made = batch()
    pack_into(form, made, at, value)
    write_crc(made, 0, len(made))
    return made


def refusal(log: Log, payload: bytearray) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        log.append(payload, 0, len(payload), leader_epoch=0, now_ms=NOW_MS)
    assert log.end_offset == 0 and log.size_bytes == 0, "what is refused leaves nothing behind"
    return refused.value


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (bytearray(), ErrorCode.INVALID_RECORD),
        (bytearray(b"\0" * 20), ErrorCode.CORRUPT_MESSAGE),
        (batch() + batch(), ErrorCode.INVALID_RECORD),
        (batch()[:-1], ErrorCode.INVALID_RECORD),
        (batch() + b"\0", ErrorCode.INVALID_RECORD),
        (changed(">b", 16, 1), ErrorCode.INVALID_RECORD),
        (changed(">b", 16, 0), ErrorCode.INVALID_RECORD),
        (changed(">b", 16, 3), ErrorCode.CORRUPT_MESSAGE),
        (changed(">b", 16, -1), ErrorCode.CORRUPT_MESSAGE),
        (changed(">i", 8, 5), ErrorCode.CORRUPT_MESSAGE),
        (changed(">q", 0, 7), ErrorCode.INVALID_RECORD),
        (changed(">i", 57, 0), ErrorCode.INVALID_RECORD),
        (changed(">i", 57, -1), ErrorCode.INVALID_RECORD),
        (changed(">i", 57, 2), ErrorCode.INVALID_RECORD),
        (changed(">i", 23, 3), ErrorCode.INVALID_RECORD),
        (changed(">h", 21, 0x20), ErrorCode.INVALID_RECORD),
        (changed(">h", 21, 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (changed(">h", 21, 8), ErrorCode.INVALID_TIMESTAMP),
        (batch(producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD),
        (batch(Record.of(b"k", b"v", NOW_MS + 3_600_001)), ErrorCode.INVALID_TIMESTAMP),
    ],
)
def test_a_bad_batch_is_refused_by_its_code(payload: bytearray, code: ErrorCode) -> None:
    assert refusal(new_log(), payload).code is code


def test_any_flipped_bit_under_the_checksum_is_corrupt() -> None:
    for bit in range(21 * 8, len(batch()) * 8, 7):
        damaged = batch()
        damaged[bit // 8] ^= 1 << bit % 8
        assert refusal(new_log(), damaged).code is ErrorCode.CORRUPT_MESSAGE


def test_sizes_are_bounded_by_the_topic() -> None:
    large = batch(Record.of(b"k", b"x" * 2000, NOW_MS))
    assert refusal(new_log(max_message_bytes=1000), large).code is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(new_log(segment_bytes=1000), large).code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_old_timestamps_are_refused_where_the_topic_says_so() -> None:
    old = batch(Record.of(b"k", b"v", NOW_MS - 2000))
    assert refusal(new_log(timestamp_before_max_ms=1000), old).code is ErrorCode.INVALID_TIMESTAMP
    none = batch(Record.of(b"k", b"v", -1))
    log = new_log(timestamp_before_max_ms=1000)
    log.append(none, 0, len(none), leader_epoch=0, now_ms=NOW_MS)


def test_a_compacted_topic_names_the_records_without_a_key() -> None:
    mixed = batch(Record.of(b"k", b"v", NOW_MS), Record.of(None, b"v", NOW_MS))
    refused = refusal(new_log(cleanup_policy=("compact",)), mixed)
    assert isinstance(refused, RecordsRefused)
    assert refused.code is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == [1]


def test_records_are_looked_into_where_the_topic_asks_for_it() -> None:
    broken = batch(Record.of(b"k", b"v", NOW_MS))
    broken[62] = 0x7F  # inside the record: its attributes; then its length
    broken[61] = 0x7F
    write_crc(broken, 0, len(broken))
    assert refusal(new_log(check_records=True), broken).code is ErrorCode.INVALID_RECORD
    log = new_log()
    log.append(broken, 0, len(broken), leader_epoch=0, now_ms=NOW_MS)


def test_a_topic_with_its_own_codec_recompresses() -> None:
    log = new_log(compression=Codec.GZIP)
    sent = batch(Record.of(b"k", b"v" * 1000, NOW_MS), codec=Codec.ZSTD)
    log.append(sent, 0, len(sent), leader_epoch=0, now_ms=NOW_MS)
    stored = log.read(0, 1 << 20, limit_offset=1)[0].read()
    assert read_header(stored).codec == Codec.GZIP
    assert read_records(stored)[0].value == b"v" * 1000


def test_a_largest_timestamp_below_the_first_is_corrected() -> None:
    """Some clients leave it out; time indexes would never find the batch."""
    sent = changed(">q", 35, -1)
    log = new_log()
    log.append(sent, 0, len(sent), leader_epoch=0, now_ms=NOW_MS)
    found = log.find_timestamp(NOW_MS)
    assert found is not None and found.offset == 0
