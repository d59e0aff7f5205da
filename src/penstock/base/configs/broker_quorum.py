"""The metadata quorum and the registration of brokers."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, idle, table

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST

QUORUM_CONFIGS = table(
    idle("broker.heartbeat.interval.ms", INT, "2000"),
    idle("broker.session.timeout.ms", INT, "9000"),
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
    idle("controller.quorum.auto.join.enable", BOOLEAN, "false"),
    idle("controller.quorum.bootstrap.servers", LIST, "", unique=True),
    idle("controller.quorum.election.backoff.max.ms", INT, "1000", low=0),
    idle("controller.quorum.election.timeout.ms", INT, "1000", low=0),
    idle("controller.quorum.fetch.max.bytes", INT, "1048576", low=1),
    idle("controller.quorum.fetch.snapshot.max.bytes", INT, "1048576", low=1),
    idle("controller.quorum.fetch.timeout.ms", INT, "2000", low=0),
    idle("controller.quorum.request.timeout.ms", INT, "2000", low=0),
    idle("controller.quorum.retry.backoff.ms", INT, "20", low=0),
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
    idle("initial.broker.registration.timeout.ms", INT, "60000"),
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
