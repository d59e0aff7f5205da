"""Groups and committed offsets."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table

STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
LIST = ConfigType.LIST
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

GROUPS_CONFIGS = table(
    idle("group.consumer.assignment.interval.ms", INT, "1000", low=0, dynamic=CLUSTER_WIDE),
    idle("group.consumer.assignors", LIST, "uniform,range", empty_ok=False, unique=True),
    idle("group.consumer.heartbeat.interval.ms", INT, "5000", low=1),
    idle("group.consumer.max.assignment.interval.ms", INT, "15000", low=0),
    idle("group.consumer.max.heartbeat.interval.ms", INT, "15000", low=1),
    idle("group.consumer.max.session.timeout.ms", INT, "60000", low=1),
    idle("group.consumer.max.size", INT, "2147483647", low=1),
    idle(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        one_of=(
            "DISABLED",
            "DOWNGRADE",
            "UPGRADE",
            "BIDIRECTIONAL",
        ),
        fold_case=True,
    ),
    idle("group.consumer.min.assignment.interval.ms", INT, "0", low=0),
    idle("group.consumer.min.heartbeat.interval.ms", INT, "5000", low=1),
    idle("group.consumer.min.session.timeout.ms", INT, "45000", low=1),
    idle("group.consumer.regex.refresh.interval.ms", INT, "600000", low=10000, internal=True),
    idle("group.consumer.session.timeout.ms", INT, "45000", low=1),
    idle("group.coordinator.append.linger.ms", INT, "-1", low=-1),
    idle("group.coordinator.background.threads", INT, "2", low=1),
    idle("group.coordinator.cached.buffer.max.bytes", INT, "1048588", low=524288, dynamic=CLUSTER_WIDE),
    idle(
        "group.coordinator.rebalance.protocols",
        LIST,
        "classic,consumer,streams",
        one_of=(
            "consumer",
            "classic",
            "share",
            "streams",
        ),
        empty_ok=False,
        unique=True,
    ),
    idle("group.coordinator.threads", INT, "4", low=1),
    ConfigDef(
        "group.initial.rebalance.delay.ms",
        INT,
        "3000",
        doc="How long a new classic group waits for more members before its first assignment.",
    ),
    ConfigDef(
        "group.max.session.timeout.ms",
        INT,
        "1800000",
        doc="The longest session timeout a member of a classic group may ask for.",
    ),
    ConfigDef("group.max.size", INT, "2147483647", low=1, doc="Members that a classic group may have."),
    ConfigDef(
        "group.min.session.timeout.ms",
        INT,
        "6000",
        doc="The shortest session timeout a member of a classic group may ask for.",
    ),
    idle("group.streams.assignment.interval.ms", INT, "1000", low=0, dynamic=CLUSTER_WIDE),
    idle("group.streams.heartbeat.interval.ms", INT, "5000", low=1),
    idle("group.streams.initial.rebalance.delay.ms", INT, "3000", low=0),
    idle("group.streams.max.assignment.interval.ms", INT, "15000", low=0),
    idle("group.streams.max.heartbeat.interval.ms", INT, "15000", low=1),
    idle("group.streams.max.session.timeout.ms", INT, "60000", low=1),
    idle("group.streams.max.size", INT, "2147483647", low=1),
    idle("group.streams.max.standby.replicas", INT, "2", low=0),
    idle("group.streams.min.assignment.interval.ms", INT, "0", low=0),
    idle("group.streams.min.heartbeat.interval.ms", INT, "5000", low=1),
    idle("group.streams.min.session.timeout.ms", INT, "45000", low=1),
    idle("group.streams.num.standby.replicas", INT, "0", low=0),
    idle("group.streams.session.timeout.ms", INT, "45000", low=1),
    ConfigDef("offset.metadata.max.bytes", INT, "4096", doc="The longest note that may be committed with an offset."),
    idle("offsets.commit.timeout.ms", INT, "5000", low=1),
    idle("offsets.load.buffer.size", INT, "5242880", low=1),
    ConfigDef(
        "offsets.retention.check.interval.ms",
        LONG,
        "600000",
        low=1,
        doc="How often offsets past their retention are looked for.",
    ),
    ConfigDef(
        "offsets.retention.minutes",
        INT,
        "10080",
        low=1,
        doc="How long offsets are kept after their group became empty.",
    ),
    idle("offsets.topic.compression.codec", INT, "0"),
    ConfigDef(
        "offsets.topic.num.partitions",
        INT,
        "50",
        low=1,
        doc="Partitions of the topic of committed offsets; it may not change once the topic exists.",
    ),
    ConfigDef(
        "offsets.topic.replication.factor",
        SHORT,
        "3",
        low=1,
        doc="Replicas of the topic of committed offsets; a smaller cluster gets fewer.",
    ),
    ConfigDef(
        "offsets.topic.segment.bytes",
        INT,
        "104857600",
        low=1,
        doc="The size of a segment of the topic of committed offsets.",
    ),
)
