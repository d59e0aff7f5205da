"""Names of Kafka's consumer configuration, which `kafka.*` options pass on."""

from __future__ import annotations

from penstock.wire.security_names import NAMES

CONSUMER_CONFIGS = frozenset(
    {
        "allow.auto.create.topics",
        "api.version.request",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "bootstrap.servers",
        "check.crcs",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "enable.auto.commit",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "interceptor.classes",
        "isolation.level",
        "key.deserializer",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "metric.reporters",
        "partition.assignment.strategy",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.providers",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "value.deserializer",
        *NAMES,
    }
)

_NO_DESERIALIZER = (
    "keys and values arrive as bytes; decode them by valueFormat and keyFormat, or with Spark's functions"
)
SET_BY_THE_SOURCE = {
    "auto.offset.reset": "startingOffsets says where to begin, and the checkpoint where to go on",
    "enable.auto.commit": "progress is kept in the checkpoint and shown as the group's offsets when a batch is done",
    "interceptor.classes": "there is no Java consumer to intercept",
    "key.deserializer": _NO_DESERIALIZER,
    "value.deserializer": _NO_DESERIALIZER,
}
