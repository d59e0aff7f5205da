"""Configurations that Apache Kafka does not have. They are read at the start and told by no API."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, table

OWN_CONFIGS = table(
    ConfigDef(
        "penstock.admin.listener",
        ConfigType.STRING,
        "",
        doc="HOST:PORT of /metrics and /health; empty: none.",
    ),
    ConfigDef(
        "penstock.cluster.id",
        ConfigType.STRING,
        "",
        doc="The cluster's id, the same on every node: with it a node of several formats its empty directory itself.",
    ),
    ConfigDef(
        "penstock.balance.bytes.per.second",
        ConfigType.LONG,
        "50000000",
        low=0,
        doc="How much data the balancer has copied between brokers, over time.",
    ),
    ConfigDef(
        "penstock.balance.enable",
        ConfigType.BOOLEAN,
        "true",
        doc="Whether the active controller moves replicas and leaders, so that brokers carry and lead alike.",
    ),
    ConfigDef(
        "penstock.balance.interval.ms",
        ConfigType.LONG,
        "60000",
        low=100,
        doc="How often the balancer looks at the cluster; more often while something is on its way.",
    ),
    ConfigDef(
        "penstock.balance.moves",
        ConfigType.INT,
        "4",
        low=0,
        doc="How many partitions may be on their way at once for the balancer to send another.",
    ),
    ConfigDef(
        "penstock.initial.controllers",
        ConfigType.LIST,
        "",
        doc="The voters of a new cluster, each as id@host:port:directory-id, the same list on every node: with it an "
        "empty directory is formatted as kafka-storage does with --initial-controllers.",
    ),
    ConfigDef(
        "penstock.quorum.eager.elections",
        ConfigType.BOOLEAN,
        "true",
        doc="Whether a voter that has just started, or whose leader refuses connections, asks at once whether it would "
        "be elected; otherwise only after the timeouts, as in Kafka.",
    ),
    ConfigDef(
        "penstock.scrub.interval.ms",
        ConfigType.LONG,
        "2000",
        low=10,
        doc="How often a piece of eight megabytes at the most is read again to see whether it is still as it was "
        "written, and how soon what is damaged is repaired.",
    ),
    ConfigDef(
        "penstock.scrub.rest.ms",
        ConfigType.LONG,
        "3600000",
        low=0,
        doc="How long nothing is read again once all has been.",
    ),
    ConfigDef(
        "penstock.broker.reconnect.ms",
        ConfigType.INT,
        "500",
        low=-1,
        doc="How long a broker may be without the connection of its heartbeats before it is fenced; -1: until its "
        "session times out, as in Kafka.",
    ),
)
