"""Names of Kafka's producer configuration, which `kafka.*` options pass on."""

from __future__ import annotations

from penstock.wire.security_names import NAMES

NUMBERS = frozenset(
    {
        "batch.size",
        "buffer.memory",
        "delivery.timeout.ms",
        "max.block.ms",
        "max.request.size",
        "request.timeout.ms",
        "transaction.timeout.ms",
    }
)
"""those that the sink follows; a value that is none would else fail every task."""

PRODUCER_CONFIGS = frozenset(
    {
        *NUMBERS,
        "acks",
        "bootstrap.servers",
        "client.dns.lookup",
        "client.id",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "connections.max.idle.ms",
        "enable.idempotence",
        "enable.metrics.push",
        "interceptor.classes",
        "key.serializer",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "metadata.max.age.ms",
        "metadata.max.idle.ms",
        "metric.reporters",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.providers",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "transactional.id",
        "value.serializer",
        *NAMES,
    }
)
