"""What a topic's configuration changes in a batch that a client sent: its codec, its time. Most topics change
nothing."""

from __future__ import annotations

from struct import Struct

from penstock.core.log import validate
from penstock.core.log.config import LogConfig
from penstock.core.log.recompress import recompress
from penstock.records.batch import (
    LOG_APPEND_TIME,
    MAX_TIMESTAMP_AT,
    BatchHeader,
    patch_append_time,
    read_header,
    write_crc,
)

Writable = bytearray | memoryview

_I64 = Struct(">q")


def takes_as_sent(config: LogConfig) -> bool:
    """Whether a checked batch goes into the log as it came, but for offset and epoch."""
    return (
        config.compression is None
        and config.timestamp_type != LOG_APPEND_TIME
        and not config.is_compacted
        and not config.check_records
    )


def rewrite(
    buf: Writable, at: int, size: int, header: BatchHeader, config: LogConfig, now_ms: int, where: str
) -> tuple[Writable, int, int, BatchHeader]:
    """The batch as it is to be stored: in place where it can be, else in a buffer of its own. Records are checked one
    by one where the topic asks for it."""
    newest = max(header.max_timestamp, header.base_timestamp)
    if config.is_compacted or config.check_records:
        newest = validate.check_each_record(buf, at, config, now_ms, where)
    budget = validate.budget_bytes(config)
    packed = recompress(buf, at, config.compression, level=config.compression_level, budget_bytes=budget)
    if packed is not None:
        buf, at, size = packed, 0, len(packed)
        if size > config.max_message_bytes:
            raise validate.too_large(size, config, where)
    if config.timestamp_type == LOG_APPEND_TIME:
        patch_append_time(buf, at, size, now_ms)
    elif newest != header.max_timestamp:
        _I64.pack_into(buf, at + MAX_TIMESTAMP_AT, newest)
        write_crc(buf, at, size)
    return buf, at, size, read_header(buf, at)
