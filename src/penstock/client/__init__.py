"""Producer, Consumer and Admin for applications: a typed facade over librdkafka.

Doors: `Producer`, `Consumer`, `Admin`, the asyncio twins `AsyncProducer` and `AsyncConsumer`, and the serializers.
They work against Penstock and Apache Kafka alike.

Invariants:
1. A producer is idempotent with acks=all unless told otherwise; every sent record settles its future exactly once.
2. A consumer commits a record only after the next one was asked for, or after a clean close.
3. Whatever fails is a `ClientError`; librdkafka's own exceptions do not come through.
4. Closing ends every thread that was started.

It never imports the broker, and nothing from core/.
"""

from penstock.base.ids import TopicPartition
from penstock.client.admin import Admin
from penstock.client.admin_types import (
    Broker,
    ClusterInfo,
    ConfigValue,
    GroupInfo,
    GroupListing,
    Member,
    NewTopic,
    PartitionInfo,
    PartitionLag,
    TopicInfo,
)
from penstock.client.aio import AsyncConsumer, AsyncProducer
from penstock.client.consumer import Consumer
from penstock.client.errors import (
    BrokerUnreachable,
    ClientError,
    ConfigRefused,
    DeserializationError,
    GroupNotFound,
    OffsetsUnknown,
    SerializationError,
    TopicExists,
    TopicNotFound,
)
from penstock.client.partitioners import Hash, RoundRobin, partition_for_key
from penstock.client.producer import Producer
from penstock.client.records import Record, RecordMetadata
from penstock.client.serializers import Bytes, Deserializer, Integer, Json, Serializer, Text, Typed

__all__ = [
    "Admin",
    "AsyncConsumer",
    "AsyncProducer",
    "Broker",
    "BrokerUnreachable",
    "Bytes",
    "ClientError",
    "ClusterInfo",
    "ConfigRefused",
    "ConfigValue",
    "Consumer",
    "DeserializationError",
    "Deserializer",
    "GroupInfo",
    "GroupListing",
    "GroupNotFound",
    "Hash",
    "Integer",
    "Json",
    "Member",
    "NewTopic",
    "OffsetsUnknown",
    "PartitionInfo",
    "PartitionLag",
    "Producer",
    "Record",
    "RecordMetadata",
    "RoundRobin",
    "SerializationError",
    "Serializer",
    "Text",
    "TopicExists",
    "TopicInfo",
    "TopicNotFound",
    "TopicPartition",
    "Typed",
    "partition_for_key",
]
