"""The node itself: its identity, listeners, connections, requests, and the defaults of topics."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table
from penstock.base.configs.rules import gzip_level_fault

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PER_BROKER = Dynamic.PER_BROKER
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

SERVER_CONFIGS = table(
    ConfigDef(
        "advertised.listeners",
        LIST,
        None,
        empty_ok=False,
        unique=True,
        doc="The addresses that clients are told to use, where they differ from `listeners`.",
    ),
    idle("alter.config.policy.class.name", CLASS, None),
    ConfigDef(
        "auto.create.topics.enable",
        BOOLEAN,
        "true",
        doc="Whether a topic that a client asks for is created when it does not exist.",
    ),
    idle("background.threads", INT, "10", low=1, dynamic=CLUSTER_WIDE),
    ConfigDef("broker.id", INT, "-1", doc="The older name of node.id, which is shown for it."),
    ConfigDef(
        "broker.rack",
        STRING,
        None,
        doc="Where this broker stands; replicas are spread over racks and clients may fetch from their own.",
    ),
    ConfigDef(
        "compression.gzip.level",
        INT,
        "-1",
        check=gzip_level_fault,
        dynamic=CLUSTER_WIDE,
        doc="The default of the topic configuration of the same name.",
    ),
    ConfigDef(
        "compression.lz4.level",
        INT,
        "9",
        low=1,
        high=17,
        dynamic=CLUSTER_WIDE,
        doc="The default of the topic configuration of the same name.",
    ),
    ConfigDef(
        "compression.type",
        STRING,
        "producer",
        one_of=(
            "uncompressed",
            "zstd",
            "lz4",
            "snappy",
            "gzip",
            "producer",
        ),
        dynamic=CLUSTER_WIDE,
        doc="The default of the topic configuration of the same name.",
    ),
    ConfigDef(
        "compression.zstd.level",
        INT,
        "3",
        low=-131072,
        high=22,
        dynamic=CLUSTER_WIDE,
        doc="The default of the topic configuration of the same name.",
    ),
    idle("config.providers", LIST, "", unique=True, dynamic=CLUSTER_WIDE),
    ConfigDef("connections.max.idle.ms", LONG, "600000", doc="How long a connection may be idle before it is closed."),
    idle("create.topic.policy.class.name", CLASS, None),
    ConfigDef(
        "default.replication.factor", INT, "1", doc="Replicas of a new topic where its creator leaves the number open."
    ),
    idle("delete.records.purgatory.purge.interval.requests", INT, "1"),
    ConfigDef("delete.topic.enable", BOOLEAN, "true", doc="Whether topics may be deleted."),
    idle("early.start.listeners", LIST, None, unique=True),
    ConfigDef(
        "fetch.max.bytes",
        INT,
        "57671680",
        low=1024,
        doc="The most that one fetch is answered with, however much it asks for; one batch always fits.",
    ),
    idle("fetch.purgatory.purge.interval.requests", INT, "1000"),
    ConfigDef("inter.broker.listener.name", STRING, None, doc="The listener by which brokers fetch from each other."),
    ConfigDef(
        "listener.security.protocol.map",
        STRING,
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        dynamic=PER_BROKER,
        doc="Which protocol each listener name speaks.",
    ),
    ConfigDef(
        "listeners",
        LIST,
        "PLAINTEXT://:9092",
        empty_ok=False,
        unique=True,
        dynamic=PER_BROKER,
        doc="The addresses this node listens on, each as NAME://host:port.",
    ),
    idle("max.connection.creation.rate", INT, "2147483647", low=0, dynamic=CLUSTER_WIDE),
    ConfigDef(
        "max.connections",
        INT,
        "2147483647",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="Connections that a listener keeps at most; above it a new one is closed at once.",
    ),
    ConfigDef(
        "max.connections.per.ip",
        INT,
        "2147483647",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="Connections that one address may have with a listener.",
    ),
    idle("max.connections.per.ip.overrides", STRING, "", dynamic=CLUSTER_WIDE),
    ConfigDef(
        "max.incremental.fetch.session.cache.slots",
        INT,
        "1000",
        low=0,
        doc="Fetch sessions that this broker remembers.",
    ),
    ConfigDef(
        "max.request.partition.size.limit",
        INT,
        "2000",
        low=1,
        doc="Partitions that one page of DescribeTopicPartitions may hold.",
    ),
    ConfigDef(
        "message.max.bytes",
        INT,
        "1048588",
        low=0,
        dynamic=CLUSTER_WIDE,
        doc="The default of a topic's max.message.bytes.",
    ),
    ConfigDef(
        "min.insync.replicas",
        INT,
        "1",
        low=1,
        dynamic=CLUSTER_WIDE,
        doc="The default of the topic configuration of the same name.",
    ),
    ConfigDef(
        "node.id",
        INT,
        None,
        low=0,
        required=True,
        doc="The number of this node in the cluster, the same for its broker and its controller.",
    ),
    idle("num.io.threads", INT, "8", low=1, dynamic=CLUSTER_WIDE),
    idle("num.network.threads", INT, "3", low=1, dynamic=CLUSTER_WIDE),
    ConfigDef(
        "num.partitions", INT, "1", low=1, doc="Partitions of a new topic where its creator leaves the number open."
    ),
    ConfigDef(
        "process.roles",
        LIST,
        None,
        one_of=(
            "broker",
            "controller",
        ),
        empty_ok=False,
        unique=True,
        required=True,
        doc="What this process is: broker, controller, or both.",
    ),
    idle("producer.purgatory.purge.interval.requests", INT, "1000"),
    idle("queued.max.request.bytes", LONG, "-1"),
    idle("queued.max.requests", INT, "500", low=1),
    ConfigDef("request.timeout.ms", INT, "30000", doc="How long a broker waits for the active controller to answer."),
    idle("socket.connection.setup.timeout.max.ms", LONG, "30000"),
    idle("socket.connection.setup.timeout.ms", LONG, "10000"),
    idle("socket.listen.backlog.size", INT, "50", low=1),
    idle("socket.receive.buffer.bytes", INT, "102400"),
    ConfigDef(
        "socket.request.max.bytes",
        INT,
        "104857600",
        low=1,
        doc="The largest request that is read; a larger one closes its connection.",
    ),
    idle("socket.send.buffer.bytes", INT, "102400"),
    ConfigDef(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        dynamic=CLUSTER_WIDE,
        doc="The default of the topic configuration of the same name.",
    ),
    idle("unstable.api.versions.enable", BOOLEAN, "false", internal=True),
    idle("unstable.feature.versions.enable", BOOLEAN, "false", internal=True),
)
