"""Where partitions lie and who leads them, changed by an operator; and a broker that is gone, forgotten.

Any broker may be asked: it hands the request on to the controller. What is refused of one partition is part of what
these talks return, in the controller's own words; they raise what concerns a whole request. A retry after a lost
connection may find its own first attempt done: a cancelled move is then NO_REASSIGNMENT_IN_PROGRESS, an election
ELECTION_NOT_NEEDED, a broker BROKER_ID_NOT_REGISTERED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.generated.alter_partition_reassignments_response import AlterPartitionReassignmentsResponse
from penstock.protocol.generated.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.generated.describe_cluster_response import DescribeClusterResponse
from penstock.protocol.generated.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.generated.elect_leaders_response import ElectLeadersResponse
from penstock.protocol.generated.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from penstock.protocol.generated.list_partition_reassignments_response import ListPartitionReassignmentsResponse
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from penstock.protocol.generated.unregister_broker_request import UnregisterBrokerRequest
from penstock.protocol.generated.unregister_broker_response import UnregisterBrokerResponse
from penstock.protocol.message import Message
from penstock.wire.admin import describe_cluster
from penstock.wire.assignors import by_topic
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import ANY_NODE, REQUEST_TIMEOUT_MS, Conversation, ask, now
from penstock.wire.errors import check, error_code
from penstock.wire.routes import ask_any, retrying

T = TypeVar("T")

PARTITIONS_A_REQUEST_MAX = 500
"""A controller decides about a request at one go, and refuses one that changes too much."""
PREFERRED, UNCLEAN = 0, 1


class Outcome(NamedTuple):
    """What came of a request, for one partition."""

    code: ErrorCode
    text: str


Outcomes = dict[TopicPartition, Outcome]


class Moving(NamedTuple):
    """A partition on its way."""

    replicas: list[int]
    """all that there are at the moment, those to come and those to go among them"""
    adding: list[int]
    removing: list[int]

    @property
    def target(self) -> list[int]:
        return [one for one in self.replicas if one not in self.removing]


def alter_reassignments(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[Outcomes]:
    """Give each partition these replicas, in this order; None: it stays where it was before it was moved."""
    outcomes: Outcomes = {}
    for some in _batches(targets):
        topics = [
            ReassignableTopic(
                name=name,
                partitions=[_reassignable(index, targets[TopicPartition(name, index)]) for index in indexes],
            )
            for name, indexes in by_topic(some).items()
        ]
        request = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=timeout_ms)
        answer = yield from _ask_controller(
            cluster,
            request,
            AlterPartitionReassignmentsResponse,
            lambda reply: (reply.error_code, reply.error_message),
            timeout_ms,
        )
        for topic in answer.responses:
            for one in topic.partitions:
                place = TopicPartition(topic.name, one.partition_index)
                outcomes[place] = _outcome(one.error_code, one.error_message)
    cluster.mark_stale()
    return outcomes


def list_reassignments(
    cluster: Cluster, *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> Conversation[dict[TopicPartition, Moving]]:
    """All that is on its way, sorted."""
    answer = yield from _ask_controller(
        cluster,
        ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout_ms),
        ListPartitionReassignmentsResponse,
        lambda reply: (reply.error_code, reply.error_message),
        timeout_ms,
    )
    found = {
        TopicPartition(topic.name, one.partition_index): Moving(
            one.replicas, one.adding_replicas, one.removing_replicas
        )
        for topic in answer.topics
        for one in topic.partitions
    }
    return dict(sorted(found.items()))


def elect_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    *,
    unclean: bool = False,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[Outcomes]:
    """The first replicas lead again; `unclean`: anybody alive leads where nobody else can. Those that need no election
    are ELECTION_NOT_NEEDED."""
    outcomes: Outcomes = {}
    for some in _batches(partitions):
        topics = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in by_topic(some).items()]
        request = ElectLeadersRequest(
            election_type=UNCLEAN if unclean else PREFERRED, topic_partitions=topics, timeout_ms=timeout_ms
        )
        answer = yield from _ask_controller(
            cluster, request, ElectLeadersResponse, lambda reply: (reply.error_code, None), timeout_ms
        )
        for topic in answer.replica_election_results:
            for one in topic.partition_result:
                place = TopicPartition(topic.topic, one.partition_id)
                outcomes[place] = _outcome(one.error_code, one.error_message)
    cluster.mark_stale()
    return outcomes


def unregister_broker(cluster: Cluster, broker_id: int, *, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Conversation[None]:
    yield from _ask_controller(
        cluster,
        UnregisterBrokerRequest(broker_id=broker_id),
        UnregisterBrokerResponse,
        lambda reply: (reply.error_code, reply.error_message),
        timeout_ms,
    )


def describe_every_topic(
    cluster: Cluster, *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> Conversation[list[MetadataResponseTopic]]:
    """All topics with leaders, replicas and ISR, as one broker knows them; the brokers are learned besides."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    answer = yield from ask_any(cluster, request, MetadataResponse, timeout_ms=timeout_ms)
    cluster.learn(answer, (yield from now()))
    return answer.topics


class Registered(NamedTuple):
    answer: DescribeClusterResponse
    complete: bool
    """False where the cluster is too old to tell of brokers that are away."""


def describe_registered(cluster: Cluster) -> Conversation[Registered]:
    """The brokers that the cluster knows, those that are away among them where it tells (KIP-1073)."""
    request = DescribeClusterRequest(include_fenced_brokers=True)
    try:
        found = yield from ask_any(cluster, request, DescribeClusterResponse, lambda reply: reply.error_code)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return Registered((yield from describe_cluster(cluster)), complete=False)
    return Registered(found, complete=True)


def _ask_controller(
    cluster: Cluster,
    request: Message,
    answer: type[T],
    fault: Callable[[T], tuple[int, str | None]],
    timeout_ms: int,
) -> Conversation[T]:
    """Through any broker, as `ask_any`, with the controller's own words where it refuses."""

    def attempt() -> Conversation[T]:
        reply = yield from ask(ANY_NODE, request, answer, timeout_ms=timeout_ms)
        check(*fault(reply), type(request).__name__.removesuffix("Request"))
        return reply

    return (yield from retrying(cluster, attempt, timeout_ms))


def _outcome(number: int, message: str | None) -> Outcome:
    code = error_code(number)
    return Outcome(code, message or code.text)


def _reassignable(index: int, replicas: Sequence[int] | None) -> ReassignablePartition:
    wanted = None if replicas is None else list(replicas)
    return ReassignablePartition(partition_index=index, replicas=wanted)


def _batches(partitions: Iterable[TopicPartition]) -> Iterator[list[TopicPartition]]:
    left = iter(partitions)
    while some := list(islice(left, PARTITIONS_A_REQUEST_MAX)):
        yield some
