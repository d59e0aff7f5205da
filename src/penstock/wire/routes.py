"""Talks that find the right broker, ask it, and try again where that helps.

Every talk ends by `timeout_ms` at the latest, counted by the shell's monotonic clock: what it then raises is the last
refusal it met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.find_coordinator_response import FindCoordinatorResponse
from penstock.protocol.generated.metadata_response import MetadataResponse
from penstock.protocol.message import Message
from penstock.wire.cluster import NO_NODE, Broker, Cluster, CoordinatorKind
from penstock.wire.conversation import ANY_NODE, REQUEST_TIMEOUT_MS, Conversation, Pause, ask, now
from penstock.wire.errors import check
from penstock.wire.retries import BACKOFF

T = TypeVar("T")

METADATA_TIMEOUT_MS = 10_000
"""for one attempt: any broker can answer, so one that says nothing for so long is cut off, and another is asked"""


def retrying(cluster: Cluster, attempt: Callable[[], Conversation[T]], timeout_ms: int) -> Conversation[T]:
    """Run `attempt` until it succeeds, fails for good, or the time is over."""
    give_up_ms = (yield from now()) + timeout_ms
    tries = 0
    while True:
        try:
            return (yield from attempt())
        except KafkaError as error:
            retry = BACKOFF.decide(error, tries)
            if retry is None or (yield from now()) + retry.after_ms >= give_up_ms:
                raise
            tries += 1
            if retry.refresh_metadata:
                cluster.mark_stale()
            yield Pause(retry.after_ms)


def refresh(cluster: Cluster, *, all_topics: bool = False, create_topics: bool = False) -> Conversation[None]:
    """One Metadata request to whoever answers."""
    request = cluster.request(all_topics=all_topics, create_topics=create_topics)
    answer = yield from ask(ANY_NODE, request, MetadataResponse, timeout_ms=METADATA_TIMEOUT_MS)
    cluster.learn(answer, (yield from now()))


def know_topics(
    cluster: Cluster, topics: Iterable[str], *, timeout_ms: int = REQUEST_TIMEOUT_MS, create_topics: bool = False
) -> Conversation[None]:
    """Metadata that is fresh enough and describes these topics. Raises the refusal of the first that stays unknown."""
    names = list(topics)
    cluster.want(names)

    def attempt() -> Conversation[None]:
        missing = any(name not in cluster.topics for name in names)
        if missing or cluster.is_stale((yield from now())):
            yield from refresh(cluster, create_topics=create_topics)
        for name in names:
            if name not in cluster.topics:
                code = cluster.refused.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                raise KafkaError(code, f"topic {name}: {code.name}")

    yield from retrying(cluster, attempt, timeout_ms)


def know_leaders(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> Conversation[dict[int, list[TopicPartition]]]:
    """The partitions by the node that leads them, in their order."""
    wanted = list(partitions)

    def attempt() -> Conversation[dict[int, list[TopicPartition]]]:
        yield from know_topics(cluster, dict.fromkeys(p.topic for p in wanted), timeout_ms=0)
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in wanted:
            by_leader.setdefault(_leader(cluster, partition), []).append(partition)
        return by_leader

    return (yield from retrying(cluster, attempt, timeout_ms))


def _leader(cluster: Cluster, partition: TopicPartition) -> int:
    if cluster.partition(partition) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{partition} does not exist")
    leader = cluster.leader(partition)
    if leader is None:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now")
    return leader


def ask_leader(
    cluster: Cluster,
    partition: TopicPartition,
    message: Message,
    answer: type[T],
    fault: Callable[[T], int],
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[T]:
    """Ask the leader of one partition; `fault` reads the error code out of the answer."""

    def attempt() -> Conversation[T]:
        (node,) = yield from know_leaders(cluster, [partition], timeout_ms=0)
        reply = yield from ask(node, message, answer, timeout_ms=timeout_ms)
        check(fault(reply), None, f"{type(message).__name__} about {partition}")
        return reply

    return (yield from retrying(cluster, attempt, timeout_ms))


def ask_any(
    cluster: Cluster,
    message: Message,
    answer: type[T],
    fault: Callable[[T], int] | None = None,
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
    max_version: int | None = None,
) -> Conversation[T]:
    """Ask any broker; in a KRaft cluster that includes everything a controller decides."""

    def attempt() -> Conversation[T]:
        reply = yield from ask(ANY_NODE, message, answer, timeout_ms=timeout_ms, max_version=max_version)
        if fault is not None:
            check(fault(reply), None, type(message).__name__)
        return reply

    return (yield from retrying(cluster, attempt, timeout_ms))


def ask_node(
    cluster: Cluster,
    node: int | None,
    message: Message,
    answer: type[T],
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[T]:
    """Ask this broker, after finding out where it is; None: any. One attempt."""
    if node is not None and (cluster.address(node) is None or cluster.is_stale((yield from now()))):
        yield from refresh(cluster)
    return (yield from ask(node, message, answer, timeout_ms=timeout_ms))


def find_coordinator(cluster: Cluster, kind: CoordinatorKind, key: str) -> Conversation[int]:
    """The coordinator of a group or a transactional id; asked once, kept until it refuses."""
    known = cluster.coordinators.get((kind, key))
    if known is not None and cluster.address(known) is not None:
        return known
    request = FindCoordinatorRequest(key_type=int(kind), coordinator_keys=[key])
    answer = yield from ask(ANY_NODE, request, FindCoordinatorResponse)
    (found,) = answer.coordinators
    check(found.error_code, found.error_message, f"the coordinator of {key}")
    if found.node_id == NO_NODE:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{key} has no coordinator now")
    cluster.learn_broker(Broker(found.node_id, found.host or "", found.port))
    cluster.coordinators[kind, key] = found.node_id
    return found.node_id


def ask_every_broker(
    cluster: Cluster, message: Message, answer: type[T], fault: Callable[[T], int]
) -> Conversation[list[T]]:
    """The answers of all brokers: each knows what it coordinates. All are asked again where one fails."""

    def attempt() -> Conversation[list[T]]:
        yield from refresh(cluster)
        replies: list[T] = []
        for node in list(cluster.brokers):
            reply = yield from ask(node, message, answer)
            check(fault(reply), None, f"{type(message).__name__} of node {node}")
            replies.append(reply)
        return replies

    return (yield from retrying(cluster, attempt, REQUEST_TIMEOUT_MS))


def ask_coordinator(
    cluster: Cluster,
    kind: CoordinatorKind,
    key: str,
    message: Message,
    answer: type[T],
    fault: Callable[[T], int],
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
    request_timeout_ms: int = REQUEST_TIMEOUT_MS,
    max_version: int | None = None,
    channel: str = "coordinator",
) -> Conversation[T]:
    """Ask the coordinator of `key`; one that has moved, is loading or does not answer is looked for again."""
    give_up_ms = (yield from now()) + timeout_ms
    tries = 0
    while True:
        try:
            node = yield from find_coordinator(cluster, kind, key)
            reply = yield from ask(
                node, message, answer, timeout_ms=request_timeout_ms, max_version=max_version, channel=channel
            )
            check(fault(reply), None, f"{type(message).__name__} of {key}")
            return reply
        except KafkaError as error:
            retry = BACKOFF.decide(error, tries)
            if retry is not None and retry.find_coordinator:
                cluster.coordinators.pop((kind, key), None)
            if retry is None or (yield from now()) + retry.after_ms >= give_up_ms:
                raise
            tries += 1
            yield Pause(retry.after_ms)
