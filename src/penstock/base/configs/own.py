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
        "penstock.broker.reconnect.ms",
        ConfigType.INT,
        "500",
        low=-1,
        doc="How long a broker may be without the connection of its heartbeats before it is fenced; -1: until its "
        "session times out, as in Kafka.",
    ),
)
