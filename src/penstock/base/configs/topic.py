"""The configurations of a topic, each with the broker configuration that gives its default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.base.configs.define import ConfigDef, ConfigType, Synonym, table
from penstock.base.configs.rules import gzip_level_fault
from penstock.base.configs.values import Value, checked, parse, split_list
from penstock.base.errors import ErrorCode, KafkaError

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
DOUBLE, LIST = ConfigType.DOUBLE, ConfigType.LIST

FOREVER = "9223372036854775807"
CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000
_THROTTLED = re.compile(r"[0-9]+:[0-9]+")


def _throttle_fault(text: str) -> str | None:
    items = split_list(text)
    if items == ["*"] or all(_THROTTLED.fullmatch(item) for item in items):
        return None
    return f"{text!r} is neither '*' nor a list of partition:broker pairs"


def _from(*names: str) -> tuple[Synonym, ...]:
    return tuple(Synonym(name) for name in names)


TOPIC_CONFIGS = table(
    ConfigDef(
        "cleanup.policy", LIST, "delete", one_of=("compact", "delete"), unique=True,
        synonyms=_from("log.cleanup.policy"),
        doc="What happens to old data: `delete` drops segments past the retention limits, `compact` keeps the last "
        "record of every key, both do both, and an empty list keeps everything.",
    ),
    ConfigDef(
        "compression.gzip.level", INT, "-1", check=gzip_level_fault, synonyms=_from("compression.gzip.level"),
        doc="The effort of gzip where the broker compresses: 1 to 9, or -1 for the library's choice.",
    ),
    ConfigDef(
        "compression.lz4.level", INT, "9", low=1, high=17, synonyms=_from("compression.lz4.level"),
        doc="The effort of lz4 where the broker compresses, from 1 to 17.",
    ),
    ConfigDef(
        "compression.type", STRING, "producer", one_of=CODECS, synonyms=_from("compression.type"),
        doc="The codec of stored batches. `producer` keeps what the producer chose; with another value the broker "
        "compresses again where a batch arrives in a different codec.",
    ),
    ConfigDef(
        "compression.zstd.level", INT, "3", low=-131072, high=22, synonyms=_from("compression.zstd.level"),
        doc="The effort of zstd where the broker compresses, from -131072 to 22.",
    ),
    ConfigDef(
        "delete.retention.ms", LONG, "86400000", low=0, synonyms=_from("log.cleaner.delete.retention.ms"),
        doc="How long compaction keeps the marker of a deleted key, so that a slow reader still sees it.",
    ),
    ConfigDef(
        "file.delete.delay.ms", LONG, "60000", low=0, synonyms=_from("log.segment.delete.delay.ms"),
        doc="How long the files of a dropped segment stay on disk under the suffix .deleted.",
    ),
    ConfigDef(
        "flush.messages", LONG, FOREVER, low=1, synonyms=_from("log.flush.interval.messages"),
        doc="Records that may be written before the log is synced to disk. With 1, a write is acknowledged only once "
        "it is durable; the syncs of many writers are gathered into one.",
    ),
    ConfigDef(
        "flush.ms", LONG, FOREVER, low=0, synonyms=_from("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        doc="The longest a record may stay unsynced.",
    ),
    ConfigDef(
        "follower.replication.throttled.replicas", LIST, "", check=_throttle_fault,
        doc="The replicas whose fetching is throttled, as partition:broker pairs, or * for all.",
    ),
    ConfigDef(
        "index.interval.bytes", INT, "4096", low=0, synonyms=_from("log.index.interval.bytes"),
        doc="Bytes of log between two entries of the offset index: fewer give faster lookups and larger indexes.",
    ),
    ConfigDef(
        "internal.segment.bytes", INT, None, internal=True,
        doc="The size of a segment without its lower bound, for tests.",
    ),
    ConfigDef(
        "leader.replication.throttled.replicas", LIST, "", check=_throttle_fault,
        doc="The replicas whose serving to followers is throttled, as partition:broker pairs, or * for all.",
    ),
    ConfigDef(
        "local.retention.bytes", LONG, "-2", low=-2, synonyms=_from("log.local.retention.bytes"), effect=False,
        doc="Bytes kept on local disk where a topic is tiered; -2 follows retention.bytes.",
    ),
    ConfigDef(
        "local.retention.ms", LONG, "-2", low=-2, synonyms=_from("log.local.retention.ms"), effect=False,
        doc="How long data stays on local disk where a topic is tiered; -2 follows retention.ms.",
    ),
    ConfigDef(
        "max.compaction.lag.ms", LONG, FOREVER, low=1, synonyms=_from("log.cleaner.max.compaction.lag.ms"),
        doc="The longest a record may wait for compaction, however little of the log is dirty.",
    ),
    ConfigDef(
        "max.message.bytes", INT, "1048588", low=0, synonyms=_from("message.max.bytes"),
        doc="The largest batch that is accepted, in bytes after compression.",
    ),
    ConfigDef(
        "message.timestamp.after.max.ms", LONG, "3600000", low=0,
        synonyms=_from("log.message.timestamp.after.max.ms"),
        doc="How far a record's timestamp may lie ahead of the broker's clock; beyond it the batch is refused.",
    ),
    ConfigDef(
        "message.timestamp.before.max.ms", LONG, FOREVER, low=0,
        synonyms=_from("log.message.timestamp.before.max.ms"),
        doc="How far a record's timestamp may lie behind the broker's clock; beyond it the batch is refused.",
    ),
    ConfigDef(
        "message.timestamp.type", STRING, "CreateTime", one_of=("CreateTime", "LogAppendTime"),
        synonyms=_from("log.message.timestamp.type"),
        doc="Whose clock stamps a record: the producer's (CreateTime) or the broker's at the append (LogAppendTime).",
    ),
    ConfigDef(
        "min.cleanable.dirty.ratio", DOUBLE, "0.5", low=0, high=1, synonyms=_from("log.cleaner.min.cleanable.ratio"),
        doc="The share of a compacted log that must be dirty before it is compacted again.",
    ),
    ConfigDef(
        "min.compaction.lag.ms", LONG, "0", low=0, synonyms=_from("log.cleaner.min.compaction.lag.ms"),
        doc="How long a record is safe from compaction after it was written.",
    ),
    ConfigDef(
        "min.insync.replicas", INT, "1", low=1, synonyms=_from("min.insync.replicas"),
        doc="Replicas that must hold a record before acks=all is answered; with fewer in sync the write is refused.",
    ),
    ConfigDef(
        "penstock.check.records", BOOLEAN, "false", internal=True,
        doc="Whether every record of a batch is checked before it is written, as on a compacted topic; it costs time.",
    ),
    ConfigDef(
        "preallocate", BOOLEAN, "false", synonyms=_from("log.preallocate"), effect=False,
        doc="Whether the file of a new segment is given its full size at once.",
    ),
    ConfigDef("remote.log.copy.disable", BOOLEAN, "false", effect=False, doc="Stops copying to tiered storage."),
    ConfigDef(
        "remote.log.delete.on.disable", BOOLEAN, "false", effect=False,
        doc="Drops the tiered data when tiering is switched off.",
    ),
    ConfigDef("remote.storage.enable", BOOLEAN, "false", effect=False, doc="Whether the topic is tiered."),
    ConfigDef(
        "retention.bytes", LONG, "-1", synonyms=_from("log.retention.bytes"),
        doc="Bytes that a partition may hold before its oldest segments are dropped; -1 for no limit.",
    ),
    ConfigDef(
        "retention.ms", LONG, "604800000", low=-1,
        synonyms=(
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", _MINUTE_MS),
            Synonym("log.retention.hours", _HOUR_MS),
        ),
        doc="How long a segment is kept after its newest record's timestamp; -1 for ever.",
    ),
    ConfigDef(
        "segment.bytes", INT, "1073741824", low=1_048_576, synonyms=_from("log.segment.bytes"),
        doc="The size at which a new segment is begun. Retention and compaction work on whole closed segments.",
    ),
    ConfigDef(
        "segment.index.bytes", INT, "10485760", low=4, synonyms=_from("log.index.size.max.bytes"),
        doc="The largest size of a segment's offset index; a full index begins a new segment.",
    ),
    ConfigDef(
        "segment.jitter.ms", LONG, "0", low=0,
        synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS)),
        doc="The most by which a segment may be begun early, at random, so that not all topics roll at once.",
    ),
    ConfigDef(
        "segment.ms", LONG, "604800000", low=1,
        synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
        doc="The age at which a new segment is begun even if the current one is not full.",
    ),
    ConfigDef(
        "unclean.leader.election.enable", BOOLEAN, "false", synonyms=_from("unclean.leader.election.enable"),
        doc="Whether a replica that is not in sync may lead when no other is left: available again, at the price of "
        "acknowledged records.",
    ),
)  # fmt: skip


def check_topic_configs(configs: Mapping[str, str], tiering: bool = False) -> dict[str, Value]:
    """The typed values of a topic's own configurations. KafkaError INVALID_CONFIG where Kafka would refuse them."""
    typed: dict[str, Value] = {}
    for name, text in configs.items():
        if name not in TOPIC_CONFIGS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name}: there is no topic configuration of this name")
        typed[name] = checked(TOPIC_CONFIGS[name], text)
    fault = _conflict(typed, tiering)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, fault)
    return typed


def _conflict(typed: Mapping[str, Value], tiering: bool) -> str | None:
    low = typed.get("min.compaction.lag.ms", 0)
    high = typed.get("max.compaction.lag.ms", parse(TOPIC_CONFIGS["max.compaction.lag.ms"], FOREVER))
    assert isinstance(low, int) and isinstance(high, int)
    if low > high:
        return f"min.compaction.lag.ms: {low} is above max.compaction.lag.ms, which is {high}"
    if typed.get("remote.storage.enable") is True and not tiering:
        return "remote.storage.enable: tiered storage is switched off in this broker"
    return None
