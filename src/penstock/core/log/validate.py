"""What is checked in a batch before it may enter the log, with Kafka's error codes (docs/deviations.md says where ours
are stricter). Always: frame, size, CRC, count, timestamps, codec. Record by record only where the topic asks for it."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import COMPRESSION_RATIO_MAX, RECORDS_CHECKED_MAX, UNCOMPRESSED_BATCH_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.core.log.config import LogConfig
from penstock.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    FRAME_BYTES,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    Codec,
    batch_size,
    crc_of,
    read_header,
)
from penstock.records.record import RecordError, check_records

_CODEC_MAX = max(Codec)


class RecordsRefused(KafkaError):
    """A batch refused for some of its records."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


def budget_bytes(config: LogConfig) -> int:
    """What a batch of this topic may expand to."""
    return max(UNCOMPRESSED_BATCH_BYTES_MAX, COMPRESSION_RATIO_MAX * config.max_message_bytes)


def check_client_batch(buf: Buffer, at: int, size: int, config: LogConfig, now_ms: int, where: str) -> BatchHeader:
    """The header of the one batch that fills `buf[at:at+size]`. Raises KafkaError where a client may not send it."""
    if size < HEADER_BYTES:
        raise _bad_frame(buf, at, size, where)
    header = read_header(buf, at)
    base_offset, length, _, magic, crc, attributes, delta, base_ts, max_ts, producer_id, _, sequence, count = header
    if magic != MAGIC or length + FRAME_BYTES != size:
        raise _bad_frame(buf, at, size, where)
    if size > config.max_message_bytes:
        raise too_large(size, config, where)
    if size > config.segment_bytes:
        raise _too_large(ErrorCode.RECORD_LIST_TOO_LARGE, size, "segment.bytes", config.segment_bytes, where)
    if crc_of(buf, at, size) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{where}: the batch does not match its CRC {crc:#010x}")
    if count <= 0 or delta != count - 1 or base_offset or attributes & CONTROL_BIT or (producer_id >= 0 > sequence):
        raise _bad_header(header, where)
    if attributes & CODEC_MASK > _CODEC_MAX:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{where}: codec {attributes & CODEC_MASK} is not one of 0 to 4"
        )
    if attributes & LOG_APPEND_TIME_BIT:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, f"{where}: a producer may not stamp a batch LogAppendTime")
    if config.timestamp_type != LOG_APPEND_TIME:
        latest = now_ms + config.timestamp_after_max_ms
        earliest = now_ms - config.timestamp_before_max_ms
        if max_ts > latest or base_ts > latest or (base_ts < earliest and base_ts != NO_TIMESTAMP):
            raise _bad_timestamp(base_ts, max_ts, earliest, latest, where)
    return header


def too_large(size: int, config: LogConfig, where: str) -> KafkaError:
    return _too_large(ErrorCode.MESSAGE_TOO_LARGE, size, "max.message.bytes", config.max_message_bytes, where)


def check_given_batch(buf: Buffer, at: int, end: int, where: str) -> BatchHeader:
    """The header of the batch at `at`, which another broker or a coordinator made. `end` is the payload's."""
    left = end - at
    if left < HEADER_BYTES:
        raise _not_whole(buf, at, end, where)
    header = read_header(buf, at)
    _, length, _, magic, crc, _, delta, _, _, _, _, _, count = header
    size = length + FRAME_BYTES
    if magic != MAGIC or not HEADER_BYTES <= size <= left:
        raise _not_whole(buf, at, end, where)
    if crc_of(buf, at, size) != crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{where}: the batch at byte {at} does not match its CRC")
    if delta < 0 or count < 0:
        raise _bad_header(header, where)
    return header


def _not_whole(buf: Buffer, at: int, end: int, where: str) -> KafkaError:
    """Of what is no whole v2 batch, why."""
    try:
        batch_size(buf, at, end)
    except KafkaError as error:
        return error
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{where}: {end - at} bytes at the end are not a whole batch")


def check_each_record(buf: Buffer, at: int, config: LogConfig, now_ms: int, where: str) -> int:
    """Go through the records of a checked batch; returns the latest timestamp in them."""
    count = read_header(buf, at).records_count
    if count > RECORDS_CHECKED_MAX:
        text = f"{where}: {count} records in one batch, {RECORDS_CHECKED_MAX} are allowed here; send smaller batches"
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text)
    own_time = config.timestamp_type != LOG_APPEND_TIME
    checked = check_records(
        buf,
        at,
        keyed=config.is_compacted,
        earliest_ms=now_ms - config.timestamp_before_max_ms if own_time else None,
        latest_ms=now_ms + config.timestamp_after_max_ms if own_time else None,
        budget_bytes=budget_bytes(config),
    )
    if not checked.errors:
        return checked.max_timestamp
    codes = [error.code for error in checked.errors]
    code = ErrorCode.INVALID_TIMESTAMP if ErrorCode.INVALID_TIMESTAMP in codes else ErrorCode.INVALID_RECORD
    first = checked.errors[0]
    raise RecordsRefused(code, f"{where}: record {first.batch_index}: {first.message}", checked.errors)


def _bad_frame(buf: Buffer, at: int, size: int, where: str) -> KafkaError:
    """Of all that can be wrong with a payload that is not exactly one v2 batch, what it is."""
    if not size:
        return KafkaError(ErrorCode.INVALID_RECORD, f"{where}: no records were sent")
    try:
        whole = batch_size(buf, at, at + size)
    except KafkaError as error:
        return KafkaError(error.code, f"{where}: {error.message}")
    if not whole:
        return KafkaError(ErrorCode.INVALID_RECORD, f"{where}: {size} bytes are less than the batch announces")
    return KafkaError(ErrorCode.INVALID_RECORD, f"{where}: one batch is allowed, {size - whole} bytes follow the first")


def _bad_header(header: BatchHeader, where: str) -> KafkaError:
    if header.base_offset:
        why = f"base offset {header.base_offset} should be 0"
    elif header.is_control:
        why = "clients may not write control records"
    elif header.records_count <= 0 or header.last_offset_delta != header.records_count - 1:
        why = f"{header.records_count} records, last offset delta {header.last_offset_delta}"
    else:
        why = f"producer {header.producer_id} sends sequence {header.base_sequence}"
    return KafkaError(ErrorCode.INVALID_RECORD, f"{where}: {why}")


def _too_large(code: ErrorCode, size: int, name: str, limit: int, where: str) -> KafkaError:
    return KafkaError(code, f"{where}: the batch has {size} bytes, {name} allows {limit}")


def _bad_timestamp(base_ts: int, max_ts: int, earliest: int, latest: int, where: str) -> KafkaError:
    text = f"{where}: timestamps {base_ts} to {max_ts} are not within {earliest} to {latest}, which "
    text += "message.timestamp.before.max.ms and message.timestamp.after.max.ms allow"
    wrong = base_ts if not earliest <= base_ts <= latest else max_ts
    return RecordsRefused(
        ErrorCode.INVALID_TIMESTAMP, text, [RecordError(0, ErrorCode.INVALID_TIMESTAMP, f"timestamp {wrong}")]
    )
