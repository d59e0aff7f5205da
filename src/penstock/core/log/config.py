"""What a topic's configuration means to its logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock.core.log.recompress import CODECS
from penstock.records.batch import CREATE_TIME, LOG_APPEND_TIME, Codec

FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Kafka's topic configuration, parsed once. Sizes in bytes, times in milliseconds; -1 means no limit."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    index_interval_bytes: int = 4096
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    cleanup_policy: tuple[str, ...] = ("delete",)
    max_message_bytes: int = 1_048_588
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    timestamp_type: int = CREATE_TIME
    timestamp_before_max_ms: int = FOREVER
    timestamp_after_max_ms: int = 3_600_000
    compression: Codec | None = None
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = 60_000
    producer_expiration_ms: int = 86_400_000
    check_records: bool = False
    min_insync_replicas: int = 1
    """of the partition's copies, its log being one of them"""

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def compression_level(self) -> int | None:
        """The level to recompress with, None for the codec's own."""
        if self.compression is Codec.GZIP:
            return None if self.compression_gzip_level == -1 else self.compression_gzip_level
        if self.compression is Codec.LZ4:
            return self.compression_lz4_level
        return self.compression_zstd_level if self.compression is Codec.ZSTD else None

    @staticmethod
    def from_values(values: Mapping[str, str]) -> LogConfig:
        """From Kafka's names; what is absent has its default, what a log does not use is ignored."""
        given = {name: parse(values[key]) for key, (name, parse) in _NAMES.items() if key in values}
        return LogConfig(**given)


def _policies(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.strip() for part in text.split(",") if part.strip()}))


def _timestamp_type(text: str) -> int:
    return LOG_APPEND_TIME if text == "LogAppendTime" else CREATE_TIME


def _truth(text: str) -> bool:
    return text.strip().lower() == "true"


_NAMES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "segment.bytes": ("segment_bytes", int),
    "internal.segment.bytes": ("segment_bytes", int),
    "segment.ms": ("segment_ms", int),
    "segment.jitter.ms": ("segment_jitter_ms", int),
    "segment.index.bytes": ("segment_index_bytes", int),
    "index.interval.bytes": ("index_interval_bytes", int),
    "retention.ms": ("retention_ms", int),
    "retention.bytes": ("retention_bytes", int),
    "cleanup.policy": ("cleanup_policy", _policies),
    "max.message.bytes": ("max_message_bytes", int),
    "flush.messages": ("flush_messages", int),
    "flush.ms": ("flush_ms", int),
    "message.timestamp.type": ("timestamp_type", _timestamp_type),
    "message.timestamp.before.max.ms": ("timestamp_before_max_ms", int),
    "message.timestamp.after.max.ms": ("timestamp_after_max_ms", int),
    "compression.type": ("compression", CODECS.__getitem__),
    "compression.gzip.level": ("compression_gzip_level", int),
    "compression.lz4.level": ("compression_lz4_level", int),
    "compression.zstd.level": ("compression_zstd_level", int),
    "delete.retention.ms": ("delete_retention_ms", int),
    "min.compaction.lag.ms": ("min_compaction_lag_ms", int),
    "max.compaction.lag.ms": ("max_compaction_lag_ms", int),
    "min.cleanable.dirty.ratio": ("min_cleanable_dirty_ratio", float),
    "file.delete.delay.ms": ("file_delete_delay_ms", int),
    "producer.id.expiration.ms": ("producer_expiration_ms", int),
    "penstock.check.records": ("check_records", _truth),
    "min.insync.replicas": ("min_insync_replicas", int),
}

assert {name for name, _ in _NAMES.values()} == {field.name for field in fields(LogConfig)}
