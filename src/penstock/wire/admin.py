"""Administration: thin typed talks, one for each request. Each raises the first refusal it meets, naming the thing.

They try again where a retry helps. A retry after a lost connection may find its own first attempt done: creating a
topic can then say TOPIC_ALREADY_EXISTS, deleting one UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.base.ids import TopicPartition
from penstock.protocol.generated.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.protocol.generated.create_partitions_response import CreatePartitionsResponse
from penstock.protocol.generated.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.generated.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.generated.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.generated.delete_records_response import DeleteRecordsResponse
from penstock.protocol.generated.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.generated.delete_topics_response import DeleteTopicsResponse
from penstock.protocol.generated.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.generated.describe_cluster_response import DescribeClusterResponse
from penstock.protocol.generated.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.generated.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from penstock.protocol.generated.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.generated.describe_log_dirs_response import DescribeLogDirsResponse, DescribeLogDirsResult
from penstock.protocol.generated.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.generated.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Conversation, ask
from penstock.wire.errors import check
from penstock.wire.routes import ask_any, ask_leader, ask_node, retrying

TOPIC = 2
BROKER = 4
GROUP = 32

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3

_BROKER_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int = -1
    """-1: the broker's num.partitions."""
    replication_factor: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """brokers by partition, in place of the two numbers."""


def create_topics(
    cluster: Cluster,
    topics: Iterable[NewTopic],
    *,
    validate_only: bool = False,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[list[CreatableTopicResult]]:
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=timeout_ms, validate_only=validate_only
    )

    def attempt() -> Conversation[list[CreatableTopicResult]]:
        answer = yield from ask(None, request, CreateTopicsResponse, timeout_ms=timeout_ms)
        for one in answer.topics:
            check(one.error_code, one.error_message, f"topic {one.name}")
        return answer.topics

    return (yield from retrying(cluster, attempt, timeout_ms))


def delete_topics(
    cluster: Cluster, names: Iterable[str], *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> Conversation[None]:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms)
    answer = yield from ask_any(cluster, request, DeleteTopicsResponse, timeout_ms=timeout_ms)
    for one in answer.responses:
        check(one.error_code, one.error_message, f"topic {one.name}")
    cluster.mark_stale()


def create_partitions(
    cluster: Cluster, counts: Mapping[str, int], *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> Conversation[None]:
    """Grow topics to so many partitions in all."""
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in counts.items()]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms)
    answer = yield from ask_any(cluster, request, CreatePartitionsResponse, timeout_ms=timeout_ms)
    for one in answer.results:
        check(one.error_code, one.error_message, f"topic {one.name}")
    cluster.mark_stale()


def describe_configs(
    cluster: Cluster,
    kind: int,
    name: str,
    keys: Sequence[str] | None = None,
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[list[DescribeConfigsResourceResult]]:
    """`kind`: TOPIC, BROKER or GROUP. A broker describes itself, so it is asked itself."""
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    request = DescribeConfigsRequest(resources=[resource])

    def attempt() -> Conversation[list[DescribeConfigsResourceResult]]:
        answer = yield from ask_node(cluster, _home(kind, name), request, DescribeConfigsResponse)
        (result,) = answer.results
        check(result.error_code, result.error_message, f"configuration of {name!r}")
        return result.configs

    return (yield from retrying(cluster, attempt, timeout_ms))


def alter_configs(
    cluster: Cluster, kind: int, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False
) -> Conversation[None]:
    """Set these, leave the others; None takes a setting back to its default."""
    configs = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in changes.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)

    def attempt() -> Conversation[None]:
        answer = yield from ask_node(cluster, _home(kind, name), request, IncrementalAlterConfigsResponse)
        for one in answer.responses:
            check(one.error_code, one.error_message, f"configuration of {one.resource_name!r}")

    yield from retrying(cluster, attempt, REQUEST_TIMEOUT_MS)


def delete_records(
    cluster: Cluster, partition: TopicPartition, before_offset: int, *, timeout_ms: int = REQUEST_TIMEOUT_MS
) -> Conversation[int]:
    """Everything before this offset (-1: all that is committed); returns the new start of the log."""
    one = DeleteRecordsPartition(partition_index=partition.partition, offset=before_offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=partition.topic, partitions=[one])], timeout_ms=timeout_ms
    )
    answer = yield from ask_leader(
        cluster,
        partition,
        request,
        DeleteRecordsResponse,
        lambda reply: reply.topics[0].partitions[0].error_code,
        timeout_ms=timeout_ms,
    )
    return answer.topics[0].partitions[0].low_watermark


def describe_cluster(cluster: Cluster) -> Conversation[DescribeClusterResponse]:
    return (
        yield from ask_any(cluster, DescribeClusterRequest(), DescribeClusterResponse, lambda reply: reply.error_code)
    )


def describe_log_dirs(cluster: Cluster, node: int) -> Conversation[list[DescribeLogDirsResult]]:
    """The directories of one broker with the sizes of all partitions in them."""

    def attempt() -> Conversation[list[DescribeLogDirsResult]]:
        answer = yield from ask_node(cluster, node, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
        check(answer.error_code, None, f"log directories of node {node}")
        return answer.results

    return (yield from retrying(cluster, attempt, REQUEST_TIMEOUT_MS))


def _home(kind: int, name: str) -> int | None:
    return int(name) if kind == BROKER and name else None


def _creatable(topic: NewTopic) -> CreatableTopic:
    assigned = bool(topic.assignment)
    return CreatableTopic(
        name=topic.name,
        num_partitions=_BROKER_DEFAULT if assigned else topic.partitions,
        replication_factor=_BROKER_DEFAULT if assigned else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignment.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
