"""Logs: segments, retention, compaction, syncs."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table
from penstock.base.configs.values import split_list

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
PER_BROKER = Dynamic.PER_BROKER
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

EVERY_DIRECTORY = "*"
"""of cordoned.log.dirs, in place of a list"""


def _cordon_fault(text: str) -> str | None:
    items = split_list(text)
    return "'*' names every directory, and stands alone" if EVERY_DIRECTORY in items and len(items) > 1 else None


LOGS_CONFIGS = table(
    ConfigDef(
        "cordoned.log.dirs",
        LIST,
        "",
        unique=True,
        check=_cordon_fault,
        dynamic=PER_BROKER,
        doc="The broker's directory, or *: it keeps the replicas it has and gets no others, before it leaves the "
        "cluster, say.",
    ),
    ConfigDef(
        "log.cleaner.backoff.ms",
        LONG,
        "15000",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="How long compaction rests when there is nothing to compact.",
    ),
    ConfigDef(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        "134217728",
        low=1_048_576,
        doc="Memory for the keys of one compaction; a log with more keys is compacted in several passes.",
    ),
    ConfigDef(
        "log.cleaner.delete.retention.ms",
        LONG,
        "86400000",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's delete.retention.ms.",
    ),
    ConfigDef("log.cleaner.enable", BOOLEAN, "true", doc="Whether compacted topics are compacted in this broker."),
    idle("log.cleaner.io.buffer.load.factor", DOUBLE, "0.9", dynamic=CLUSTER_WIDE),
    idle("log.cleaner.io.buffer.size", INT, "524288", low=0, dynamic=CLUSTER_WIDE),
    idle("log.cleaner.io.max.bytes.per.second", DOUBLE, "1.7976931348623157E308", dynamic=CLUSTER_WIDE),
    ConfigDef(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        "9223372036854775807",
        low=1,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's max.compaction.lag.ms.",
    ),
    ConfigDef(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        "0.5",
        low=0,
        high=1,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's min.cleanable.dirty.ratio.",
    ),
    ConfigDef(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        "0",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's min.compaction.lag.ms.",
    ),
    idle("log.cleaner.threads", INT, "1", low=0, dynamic=CLUSTER_WIDE),
    ConfigDef(
        "log.cleanup.policy",
        LIST,
        "delete",
        one_of=(
            "compact",
            "delete",
        ),
        unique=True,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's cleanup.policy.",
    ),
    ConfigDef(
        "log.dir",
        LIST,
        "/tmp/kafka-logs",
        empty_ok=False,
        unique=True,
        doc="The directory of the data, where log.dirs is not given.",
    ),
    idle("log.dir.failure.timeout.ms", LONG, "30000", low=1),
    ConfigDef(
        "log.dirs", LIST, None, empty_ok=False, unique=True, doc="The directory of the data; a broker here has one."
    ),
    ConfigDef(
        "log.flush.interval.messages",
        LONG,
        "9223372036854775807",
        low=1,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's flush.messages.",
    ),
    ConfigDef(
        "log.flush.interval.ms",
        LONG,
        None,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's flush.ms; it goes before log.flush.scheduler.interval.ms.",
    ),
    ConfigDef(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        "60000",
        low=0,
        doc="How often the broker notes how far each log is durable and where it starts.",
    ),
    ConfigDef(
        "log.flush.scheduler.interval.ms",
        LONG,
        "9223372036854775807",
        doc="The default of a topic's flush.ms, where log.flush.interval.ms is not given.",
    ),
    idle("log.flush.start.offset.checkpoint.interval.ms", INT, "60000", low=0),
    ConfigDef(
        "log.index.interval.bytes",
        INT,
        "4096",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's index.interval.bytes.",
    ),
    ConfigDef(
        "log.index.size.max.bytes",
        INT,
        "10485760",
        low=4,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's segment.index.bytes.",
    ),
    idle("log.initial.task.delay.ms", LONG, "30000", low=0, internal=True),
    ConfigDef(
        "log.message.timestamp.after.max.ms",
        LONG,
        "3600000",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's message.timestamp.after.max.ms.",
    ),
    ConfigDef(
        "log.message.timestamp.before.max.ms",
        LONG,
        "9223372036854775807",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's message.timestamp.before.max.ms.",
    ),
    ConfigDef(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        one_of=(
            "CreateTime",
            "LogAppendTime",
        ),
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's message.timestamp.type.",
    ),
    idle("log.preallocate", BOOLEAN, "false", dynamic=CLUSTER_WIDE),
    ConfigDef("log.retention.bytes", LONG, "-1", dynamic=CLUSTER_WIDE, doc="The default of a topic's retention.bytes."),
    ConfigDef(
        "log.retention.check.interval.ms",
        LONG,
        "300000",
        low=1,
        doc="How often logs are looked through for segments that are past their retention.",
    ),
    ConfigDef("log.retention.hours", INT, "168", doc="The default of a topic's retention.ms, in hours."),
    ConfigDef(
        "log.retention.minutes",
        INT,
        None,
        doc="The default of a topic's retention.ms, in minutes; it goes before the hours.",
    ),
    ConfigDef(
        "log.retention.ms",
        LONG,
        None,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's retention.ms; it goes before the minutes and the hours.",
    ),
    ConfigDef("log.roll.hours", INT, "168", low=1, doc="The default of a topic's segment.ms, in hours."),
    ConfigDef("log.roll.jitter.hours", INT, "0", low=0, doc="The default of a topic's segment.jitter.ms, in hours."),
    ConfigDef(
        "log.roll.jitter.ms",
        LONG,
        None,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's segment.jitter.ms; it goes before log.roll.jitter.hours.",
    ),
    ConfigDef(
        "log.roll.ms",
        LONG,
        None,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's segment.ms; it goes before log.roll.hours.",
    ),
    ConfigDef(
        "log.segment.bytes",
        INT,
        "1073741824",
        low=1048576,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's segment.bytes.",
    ),
    ConfigDef(
        "log.segment.delete.delay.ms",
        LONG,
        "60000",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's file.delete.delay.ms.",
    ),
    idle("num.recovery.threads.per.data.dir", INT, "2", low=1, dynamic=CLUSTER_WIDE),
)
