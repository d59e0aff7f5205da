"""Who of a group reads what: range, round robin and cooperative sticky, by the names that Java's clients know.

An assignor is a pure function of the subscriptions and the partition counts; the group's leader runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from penstock.base.errors import DecodeError
from penstock.base.ids import TopicPartition
from penstock.base.ports import Buffer
from penstock.protocol.generated import consumer_protocol_assignment, consumer_protocol_subscription
from penstock.protocol.generated.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3


class Subscription(NamedTuple):
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance_id: str | None = None
    rack: str | None = None


Assignment = dict[str, list[TopicPartition]]


class Assignor(Protocol):
    name: str
    cooperative: bool

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
        """`partitions`: how many each existing topic has. Every member is in the result."""


class Range:
    """Topic by topic, neighbours stay together; the first members get one more where it does not come out even."""

    name = "range"
    cooperative = False

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
        result: Assignment = {member: [] for member in members}
        for topic in sorted(partitions):
            readers = [member for member in _ordered(members) if topic in members[member].topics]
            at = 0
            for place, member in enumerate(readers):
                share = partitions[topic] // len(readers) + (place < partitions[topic] % len(readers))
                result[member] += [TopicPartition(topic, index) for index in range(at, at + share)]
                at += share
        return result


class RoundRobin:
    """All partitions in order, dealt out one by one to the members that want them."""

    name = "roundrobin"
    cooperative = False

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
        result: Assignment = {member: [] for member in members}
        circle = _ordered(members)
        turn = 0
        for topic in sorted(partitions):
            if not any(topic in members[member].topics for member in circle):
                continue
            for index in range(partitions[topic]):
                while topic not in members[circle[turn % len(circle)]].topics:
                    turn += 1
                result[circle[turn % len(circle)]].append(TopicPartition(topic, index))
                turn += 1
        return result


class CooperativeSticky:
    """Everyone keeps what it has as far as that is balanced. What has to move is first only given up, and handed to its
    new reader in the rebalance that follows, so that the rest is read on without a pause (KIP-429)."""

    name = "cooperative-sticky"
    cooperative = True

    def assign(self, members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> Assignment:
        owners = _owners(members, partitions)
        result = balance(members, partitions, owners)
        return {
            member: [partition for partition in mine if owners.get(partition, member) == member]
            for member, mine in result.items()
        }


def balance(
    members: Mapping[str, Subscription], partitions: Mapping[str, int], owners: Mapping[TopicPartition, str]
) -> Assignment:
    """Loads that differ by no more than one wherever subscriptions allow it, and few changes of owner."""
    result: Assignment = {member: [] for member in _ordered(members)}
    readers = {topic: [member for member in result if topic in members[member].topics] for topic in sorted(partitions)}
    free: list[TopicPartition] = []
    for topic, count in sorted(partitions.items()):
        for partition in (TopicPartition(topic, index) for index in range(count)):
            owner = owners.get(partition)
            if owner is not None:
                result[owner].append(partition)
            elif readers[topic]:
                free.append(partition)
    for partition in sorted(free, key=lambda one: (len(readers[one.topic]), one)):
        least = min(readers[partition.topic], key=lambda member: len(result[member]))
        result[least].append(partition)
    while _even_out(result, readers):
        pass
    return {member: sorted(mine) for member, mine in result.items()}


def _even_out(result: Assignment, readers: Mapping[str, list[str]]) -> bool:
    """Move one partition from a member to another that has at least two fewer. Each move lowers the sum of the squared
    loads, so this ends."""
    for member in sorted(result, key=lambda one: len(result[one]), reverse=True):
        for partition in reversed(result[member]):
            least = min(readers[partition.topic], key=lambda one: len(result[one]))
            if len(result[member]) - len(result[least]) >= 2:
                result[member].remove(partition)
                result[least].append(partition)
                return True
    return False


def _owners(members: Mapping[str, Subscription], partitions: Mapping[str, int]) -> dict[TopicPartition, str]:
    """Who reads what now. Of two claims the one of the later generation counts; of two of the same, neither."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in _ordered(members):
        subscription = members[member]
        for partition in subscription.owned:
            if partition.topic not in subscription.topics or partition.partition >= partitions.get(partition.topic, 0):
                continue
            generation, _ = claims.get(partition, (-2, None))
            if subscription.generation > generation:
                claims[partition] = (subscription.generation, member)
            elif subscription.generation == generation:
                claims[partition] = (generation, None)
    return {partition: member for partition, (_, member) in claims.items() if member is not None}


def _ordered(members: Mapping[str, Subscription]) -> list[str]:
    """Static members by their instance id, then the others by member id: the order survives a restart."""

    def key(member: str) -> tuple[bool, str]:
        instance_id = members[member].instance_id
        return (instance_id is None, instance_id if instance_id is not None else member)

    return sorted(members, key=key)


ASSIGNORS: dict[str, Assignor] = {one.name: one for one in (Range(), RoundRobin(), CooperativeSticky())}


def encode_subscription(subscription: Subscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(subscription.topics),
        owned_partitions=[
            consumer_protocol_subscription.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(subscription.owned).items()
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return SUBSCRIPTION_VERSION.to_bytes(2, "big") + message.encode(SUBSCRIPTION_VERSION)


def decode_subscription(data: Buffer, instance_id: str | None = None) -> Subscription:
    """A later version than ours is read as ours: fields are only ever added at the end."""
    version = min(_version(data), SUBSCRIPTION_VERSION)
    message = ConsumerProtocolSubscription.decode(memoryview(data)[2:], version)
    owned = [TopicPartition(one.topic, index) for one in message.owned_partitions for index in one.partitions]
    return Subscription(tuple(message.topics), tuple(owned), message.generation_id, instance_id, message.rack_id)


def encode_assignment(partitions: Sequence[TopicPartition]) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            consumer_protocol_assignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )
    return ASSIGNMENT_VERSION.to_bytes(2, "big") + message.encode(ASSIGNMENT_VERSION)


def decode_assignment(data: Buffer) -> list[TopicPartition]:
    """An empty assignment may come as no bytes at all."""
    if not data:
        return []
    version = min(_version(data), ASSIGNMENT_VERSION)
    message = ConsumerProtocolAssignment.decode(memoryview(data)[2:], version)
    return [TopicPartition(one.topic, index) for one in message.assigned_partitions for index in one.partitions]


def by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


def _version(data: Buffer) -> int:
    if len(data) < 2:
        raise DecodeError(f"consumer protocol: {len(data)} bytes are too few for a version")
    return int.from_bytes(data[:2], "big")
