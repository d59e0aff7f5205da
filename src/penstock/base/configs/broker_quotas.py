"""Quotas, metrics and telemetry."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table

STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

QUOTAS_CONFIGS = table(
    idle("client.quota.callback.class", CLASS, None),
    idle("kafka.metrics.polling.interval.secs", INT, "10", low=1),
    idle("kafka.metrics.reporters", LIST, "", unique=True),
    idle("metric.reporters", LIST, "org.apache.kafka.common.metrics.JmxReporter", unique=True, dynamic=CLUSTER_WIDE),
    idle("metrics.num.samples", INT, "2", low=1),
    idle("metrics.recording.level", STRING, "INFO"),
    idle("metrics.sample.window.ms", LONG, "30000", low=1),
    idle("quota.window.num", INT, "11", low=1),
    idle("quota.window.size.seconds", INT, "1", low=1),
    ConfigDef(
        "telemetry.max.bytes", INT, "1048576", low=1, doc="The largest push of metrics that is taken from a client."
    ),
)
