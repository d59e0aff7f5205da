"""What classic consumers put into JoinGroup and get from SyncGroup: the consumer protocol's own messages."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.modern.metadata import Metadata
from penstock.protocol.codec import Reader
from penstock.protocol.generated.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.protocol.generated.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from penstock.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription

_VERSION = Struct(">h")
_VERSION_MAX = 3


def version(metadata: bytes) -> int:
    """Later versions begin as the latest that is known."""
    return min(max(Reader(metadata).int16(), 0), _VERSION_MAX)


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """DecodeError where it is none."""
    reader = Reader(metadata)
    return ConsumerProtocolSubscription.read(reader, min(max(reader.int16(), 0), _VERSION_MAX))


def owned_partitions(subscription: ConsumerProtocolSubscription, metadata: Metadata) -> Assignment:
    return _by_id(((one.topic, one.partitions) for one in subscription.owned_partitions), metadata)


def read_assignment(data: bytes, metadata: Metadata) -> Assignment:
    """What a leader gave to a member, as far as the topics exist."""
    if not data:
        return {}
    reader = Reader(data)
    assigned = ConsumerProtocolAssignment.read(reader, min(max(reader.int16(), 0), _VERSION_MAX))
    return _by_id(((one.topic, one.partitions) for one in assigned.assigned_partitions), metadata)


def write_assignment(assignment: Assignment, at_version: int, metadata: Metadata) -> bytes:
    topics = metadata.image.topics_by_id
    partitions = [
        AssignedPartitions(topic=topics[topic_id].name, partitions=list(indexes))
        for topic_id, indexes in assignment.items()
        if topic_id in topics
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=b"")
    return _VERSION.pack(at_version) + message.encode(at_version)


def common_protocols(members: Iterable[ConsumerMember]) -> list[str]:
    """The protocols that every member of the classic protocol has."""
    common: dict[str, None] | None = None
    for member in members:
        if member.classic is not None:
            names = dict.fromkeys(name for name, _ in member.classic.protocols)
            common = names if common is None else {name: None for name in common if name in names}
    return list(common or ())


def _by_id(topics: Iterable[tuple[str, list[int]]], metadata: Metadata) -> Assignment:
    assignment: Assignment = {}
    for name, partitions in topics:
        topic_id = metadata.topic_id(name)
        if topic_id is not None and partitions:
            assignment[topic_id] = sorted(set(partitions))
    return assignment
