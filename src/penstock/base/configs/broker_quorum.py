"""The metadata quorum and the registration of brokers."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, idle, table

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST

QUORUM_CONFIGS = table(
    ConfigDef(
        "broker.heartbeat.interval.ms", INT, "2000", doc="How often a broker tells the controller that it is alive."
    ),
    ConfigDef("broker.session.timeout.ms", INT, "9000", doc="After how long without a heartbeat a broker is fenced."),
    ConfigDef(
        "controller.listener.names",
        LIST,
        None,
        empty_ok=False,
        unique=True,
        required=True,
        doc="The listeners that belong to the controller; clients are never told of them.",
    ),
    idle("controller.performance.always.log.threshold.ms", LONG, "2000", low=0, internal=True),
    idle("controller.performance.sample.period.ms", LONG, "60000", low=100, internal=True),
    idle("controller.quorum.append.linger.ms", INT, "25", low=0),
    ConfigDef(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        "false",
        doc="Whether a controller that is not a voter asks to become one, once it has caught up.",
    ),
    ConfigDef(
        "controller.quorum.bootstrap.servers",
        LIST,
        "",
        unique=True,
        doc="Controllers to ask for the quorum's leader, where its voters stand in the log.",
    ),
    ConfigDef(
        "controller.quorum.election.backoff.max.ms",
        INT,
        "1000",
        low=0,
        doc="The longest wait of a candidate that lost before it tries again.",
    ),
    ConfigDef(
        "controller.quorum.election.timeout.ms",
        INT,
        "1000",
        low=0,
        doc="How long a voter waits for a leader before it stands for election; up to twice as long, by chance.",
    ),
    ConfigDef(
        "controller.quorum.fetch.max.bytes",
        INT,
        "1048576",
        low=1,
        doc="Bytes of metadata log in one answer of the leader.",
    ),
    ConfigDef(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        "1048576",
        low=1,
        doc="Bytes of a metadata snapshot in one answer of the leader.",
    ),
    ConfigDef(
        "controller.quorum.fetch.timeout.ms",
        INT,
        "2000",
        low=0,
        doc="How long a voter goes without an answer of the leader before it stands for election; a leader resigns "
        "after one and a half times as long without a majority.",
    ),
    ConfigDef(
        "controller.quorum.request.timeout.ms",
        INT,
        "2000",
        low=0,
        doc="How long a request to another node of the quorum may take.",
    ),
    ConfigDef(
        "controller.quorum.retry.backoff.ms",
        INT,
        "20",
        low=0,
        doc="The wait before a request to another node of the quorum is repeated.",
    ),
    ConfigDef(
        "controller.quorum.voters",
        LIST,
        "",
        unique=True,
        doc="The controllers of a fixed quorum, each as id@host:port; empty where the quorum may change.",
    ),
    idle("controller.quota.window.num", INT, "11", low=1),
    idle("controller.quota.window.size.seconds", INT, "1", low=1),
    idle("controller.socket.timeout.ms", INT, "30000"),
    ConfigDef(
        "initial.broker.registration.timeout.ms",
        INT,
        "60000",
        doc="How long a broker that starts tries to register with the controller.",
    ),
    idle("internal.metadata.delete.delay.millis", LONG, "60000", internal=True),
    idle("internal.metadata.log.segment.bytes", INT, None, internal=True),
    idle("internal.metadata.max.batch.size.in.bytes", INT, "8388608", internal=True),
    ConfigDef(
        "metadata.log.dir", STRING, None, doc="The directory of the metadata log; here it is always that of the data."
    ),
    ConfigDef(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        "20971520",
        low=1,
        doc="Bytes of metadata records after which a snapshot is written.",
    ),
    ConfigDef(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        "3600000",
        low=0,
        doc="The longest time between two snapshots of the metadata while it changes; 0 for no limit.",
    ),
    ConfigDef(
        "metadata.log.segment.bytes",
        INT,
        "1073741824",
        low=8388608,
        doc="The size at which the metadata log begins a new segment.",
    ),
    ConfigDef(
        "metadata.log.segment.ms", LONG, "604800000", doc="The age at which the metadata log begins a new segment."
    ),
    idle("metadata.max.idle.interval.ms", INT, "500", low=0),
    ConfigDef(
        "metadata.max.retention.bytes",
        LONG,
        "104857600",
        doc="Bytes of metadata log and snapshots above which what a snapshot covers is dropped.",
    ),
    ConfigDef(
        "metadata.max.retention.ms",
        LONG,
        "604800000",
        doc="The age at which metadata log that a snapshot covers is dropped.",
    ),
    idle("server.max.startup.time.ms", LONG, "9223372036854775807", low=0, internal=True),
)
