"""Share groups (queues) and their state topic."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table

STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LIST = ConfigType.LIST
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

SHARES_CONFIGS = table(
    ConfigDef(
        "group.share.assignment.interval.ms",
        INT,
        "1000",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The shortest time between two assignments computed for a share group.",
    ),
    idle("group.share.assignors", LIST, "simple", empty_ok=False, unique=True),
    ConfigDef(
        "group.share.delivery.count.limit",
        INT,
        "5",
        low=2,
        high=10,
        doc="How often a share group that sets nothing itself has a record delivered before it is archived.",
    ),
    ConfigDef(
        "group.share.heartbeat.interval.ms",
        INT,
        "5000",
        low=1,
        doc="How often the members of a share group are asked to report.",
    ),
    ConfigDef(
        "group.share.initialize.retry.interval.ms",
        INT,
        "30000",
        low=1,
        internal=True,
        doc="After how long a share coordinator that did not answer is asked again to begin a partition.",
    ),
    ConfigDef(
        "group.share.max.assignment.interval.ms",
        INT,
        "15000",
        low=0,
        doc="The longest such time that a share group may set.",
    ),
    idle("group.share.max.delivery.count.limit", INT, "10", low=5, high=25),
    ConfigDef(
        "group.share.max.heartbeat.interval.ms",
        INT,
        "15000",
        low=1,
        doc="The longest heartbeat interval that a share group may set.",
    ),
    idle("group.share.max.partition.max.record.locks", INT, "4000", low=2000, high=10000),
    idle("group.share.max.record.lock.duration.ms", INT, "60000", low=30000, high=3600000),
    ConfigDef(
        "group.share.max.session.timeout.ms",
        INT,
        "60000",
        low=1,
        doc="The longest session timeout that a share group may set.",
    ),
    ConfigDef(
        "group.share.max.share.sessions", INT, "2000", low=1, doc="Share sessions that this broker keeps at most."
    ),
    ConfigDef("group.share.max.size", INT, "200", low=1, high=1000, doc="The most members of a share group."),
    ConfigDef(
        "group.share.min.assignment.interval.ms",
        INT,
        "0",
        low=0,
        doc="The shortest such time that a share group may set.",
    ),
    idle("group.share.min.delivery.count.limit", INT, "2", low=2, high=5),
    ConfigDef(
        "group.share.min.heartbeat.interval.ms",
        INT,
        "5000",
        low=1,
        doc="The shortest heartbeat interval that a share group may set.",
    ),
    idle("group.share.min.partition.max.record.locks", INT, "100", low=100, high=2000),
    idle("group.share.min.record.lock.duration.ms", INT, "15000", low=1000, high=30000),
    ConfigDef(
        "group.share.min.session.timeout.ms",
        INT,
        "45000",
        low=1,
        doc="The shortest session timeout that a share group may set.",
    ),
    ConfigDef(
        "group.share.partition.max.record.locks",
        INT,
        "2000",
        low=100,
        high=10000,
        doc="Records of one partition that may be unfinished in a share group that sets nothing itself.",
    ),
    idle(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        internal=True,
    ),
    ConfigDef(
        "group.share.record.lock.duration.ms",
        INT,
        "30000",
        low=1000,
        high=3600000,
        doc="How long a member may keep a record in a share group that sets nothing itself.",
    ),
    ConfigDef(
        "group.share.session.timeout.ms",
        INT,
        "45000",
        low=1,
        doc="How long a member of a share group may be silent before it is removed.",
    ),
    idle("share.coordinator.append.linger.ms", INT, "-1", low=-1),
    idle("share.coordinator.cached.buffer.max.bytes", INT, "1048588", low=524288, dynamic=CLUSTER_WIDE),
    ConfigDef(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        "300000",
        low=1,
        internal=True,
        doc="After how long a share partition that nobody writes gets a snapshot, so that older records can go.",
    ),
    idle("share.coordinator.load.buffer.size", INT, "5242880", low=1),
    ConfigDef(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        "500",
        low=0,
        high=500,
        doc="Updates of a share partition's state between two snapshots.",
    ),
    idle("share.coordinator.state.topic.compression.codec", INT, "0"),
    ConfigDef(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        "2",
        low=1,
        doc="min.insync.replicas of the topic of share states.",
    ),
    ConfigDef(
        "share.coordinator.state.topic.num.partitions",
        INT,
        "50",
        low=1,
        doc="Partitions of the topic of share states; it may not change once the topic exists.",
    ),
    ConfigDef(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        "300000",
        low=1,
        internal=True,
        doc="How often records of share states that nobody needs are cut off.",
    ),
    ConfigDef(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        "3",
        low=1,
        doc="Replicas of the topic of share states; a smaller cluster gets fewer.",
    ),
    ConfigDef(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        "104857600",
        low=1,
        doc="The size of a segment of the topic of share states.",
    ),
    idle("share.coordinator.threads", INT, "1", low=1),
    ConfigDef(
        "share.coordinator.write.timeout.ms",
        INT,
        "5000",
        low=1,
        doc="How long a share coordinator waits for its writes to be committed.",
    ),
    idle("share.fetch.purgatory.purge.interval.requests", INT, "1000"),
)
