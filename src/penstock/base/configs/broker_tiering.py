"""Tiered storage: names and defaults; Penstock keeps all data on the broker's own disks."""

from __future__ import annotations

from penstock.base.configs.define import ConfigType, Dynamic, idle, table
from penstock.base.configs.rules import empty_fault

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
CLUSTER_WIDE = Dynamic.CLUSTER_WIDE

TIERING_CONFIGS = table(
    idle("follower.fetch.last.tiered.offset.enable", BOOLEAN, "false", dynamic=CLUSTER_WIDE),
    idle("log.local.retention.bytes", LONG, "-2", low=-2, dynamic=CLUSTER_WIDE),
    idle("log.local.retention.ms", LONG, "-2", low=-2, dynamic=CLUSTER_WIDE),
    idle("remote.fetch.max.wait.ms", INT, "500", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.list.offsets.request.timeout.ms", LONG, "30000", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.index.file.cache.total.size.bytes", LONG, "1073741824", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.index.file.cache.ttl.ms", LONG, "900000", low=-1, internal=True),
    idle("remote.log.manager.copier.thread.pool.size", INT, "10", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.manager.copy.max.bytes.per.second", LONG, "9223372036854775807", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.manager.copy.quota.window.num", INT, "11", low=1),
    idle("remote.log.manager.copy.quota.window.size.seconds", INT, "1", low=1),
    idle("remote.log.manager.expiration.thread.pool.size", INT, "10", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.manager.fetch.max.bytes.per.second", LONG, "9223372036854775807", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.manager.fetch.quota.window.num", INT, "11", low=1),
    idle("remote.log.manager.fetch.quota.window.size.seconds", INT, "1", low=1),
    idle("remote.log.manager.follower.thread.pool.size", INT, "2", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.manager.task.interval.ms", LONG, "30000", low=1),
    idle("remote.log.manager.task.retry.backoff.max.ms", LONG, "30000", low=1, internal=True),
    idle("remote.log.manager.task.retry.backoff.ms", LONG, "500", low=1, internal=True),
    idle("remote.log.manager.task.retry.jitter", DOUBLE, "0.2", low=0, high=0.5, internal=True),
    idle("remote.log.manager.thread.pool.size", INT, "2", low=1),
    idle("remote.log.metadata.custom.metadata.max.bytes", INT, "128", low=0),
    idle(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        check=empty_fault,
    ),
    idle("remote.log.metadata.manager.class.path", STRING, None),
    idle("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", check=empty_fault),
    idle("remote.log.metadata.manager.listener.name", STRING, None, check=empty_fault),
    idle("remote.log.reader.max.pending.tasks", INT, "100", low=1),
    idle("remote.log.reader.threads", INT, "10", low=1, dynamic=CLUSTER_WIDE),
    idle("remote.log.storage.manager.class.name", STRING, None, check=empty_fault),
    idle("remote.log.storage.manager.class.path", STRING, None),
    idle("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", check=empty_fault),
    idle("remote.log.storage.system.enable", BOOLEAN, "false"),
)
