"""Copies of partitions between brokers."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

REPLICATION_CONFIGS = table(
    idle("alter.log.dirs.replication.quota.window.num", INT, "11", low=1),
    idle("alter.log.dirs.replication.quota.window.size.seconds", INT, "1", low=1),
    ConfigDef(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        "true",
        doc="Whether the controller gives leaders back to the first replicas of their partitions by itself.",
    ),
    idle("controlled.shutdown.enable", BOOLEAN, "true"),
    ConfigDef(
        "follower.replication.throttled.rate",
        LONG,
        "9223372036854775807",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="Bytes a second that throttled replicas fetch while they are not in sync.",
    ),
    ConfigDef(
        "leader.imbalance.check.interval.seconds",
        LONG,
        "300",
        low=1,
        doc="How often the controller looks whether leaders are to be given back.",
    ),
    ConfigDef(
        "leader.replication.throttled.rate",
        LONG,
        "9223372036854775807",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="Bytes a second that leaders send to throttled replicas while those are not in sync.",
    ),
    idle("num.replica.alter.log.dirs.threads", INT, None),
    idle("num.replica.fetchers", INT, "1", low=1, dynamic=CLUSTER_WIDE),
    idle("replica.alter.log.dirs.io.max.bytes.per.second", LONG, "9223372036854775807", low=0, dynamic=CLUSTER_WIDE),
    ConfigDef(
        "replica.fetch.backoff.ms",
        INT,
        "1000",
        low=0,
        doc="How long a follower waits after failures of its leader, at the most.",
    ),
    ConfigDef(
        "replica.fetch.max.bytes", INT, "1048576", low=0, doc="Bytes of one partition that a follower asks for at once."
    ),
    ConfigDef("replica.fetch.min.bytes", INT, "1", doc="Bytes for which a leader lets a follower wait."),
    ConfigDef(
        "replica.fetch.response.max.bytes",
        INT,
        "10485760",
        low=0,
        doc="Bytes of all partitions that a follower asks for at once.",
    ),
    ConfigDef("replica.fetch.wait.max.ms", INT, "500", doc="How long a leader lets a follower wait for them."),
    idle("replica.high.watermark.checkpoint.interval.ms", LONG, "5000"),
    ConfigDef(
        "replica.lag.time.max.ms",
        LONG,
        "30000",
        doc="How long a follower may lack what its leader has before it leaves the in-sync replicas.",
    ),
    ConfigDef(
        "replica.selector.class",
        STRING,
        None,
        doc="A name that ends with RackAwareReplicaSelector has consumers read from a replica in their rack.",
    ),
    idle("replica.socket.receive.buffer.bytes", INT, "65536"),
    ConfigDef("replica.socket.timeout.ms", INT, "30000", doc="How long a follower waits for an answer."),
    ConfigDef(
        "replication.quota.window.num",
        INT,
        "11",
        low=1,
        doc="How many windows the rate of throttled replicas is taken over.",
    ),
    ConfigDef("replication.quota.window.size.seconds", INT, "1", low=1, doc="How long each of them lasts."),
    ConfigDef(
        "unclean.leader.election.interval.ms",
        LONG,
        "300000",
        low=1,
        internal=True,
        doc="How often the controller looks for partitions without a leader that may be led by any replica.",
    ),
)
