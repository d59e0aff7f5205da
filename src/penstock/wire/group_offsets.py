"""A group's committed offsets: commit them and read them back, as a member or from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.generated.offset_commit_response import OffsetCommitResponse
from penstock.protocol.generated.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.protocol.generated.offset_fetch_response import OffsetFetchResponse
from penstock.wire.assignors import by_topic
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Conversation
from penstock.wire.errors import error_code
from penstock.wire.routes import ask_coordinator
from penstock.wire.transactions import Committed, GroupMember

LAST_VERSION_BY_NAME = 9


def commit_offsets(
    cluster: Cluster,
    member: GroupMember,
    offsets: Mapping[TopicPartition, Committed],
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[None]:
    """All or an error: the first partition that was refused is named."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, index), committed in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name, partitions=[]))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        topics=list(topics.values()),
    )
    yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        member.group_id,
        request,
        OffsetCommitResponse,
        lambda reply: next((p.error_code for t in reply.topics for p in t.partitions if p.error_code), 0),
        timeout_ms=timeout_ms,
        max_version=LAST_VERSION_BY_NAME,
    )


def fetch_offsets(
    cluster: Cluster,
    group_id: str,
    partitions: Sequence[TopicPartition] | None = None,
    *,
    require_stable: bool = True,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> Conversation[dict[TopicPartition, Committed]]:
    """What the group has committed, of these partitions or of all; those without a commit are absent. With
    `require_stable` it waits for transactions that are committing offsets just now."""
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)], require_stable=require_stable
    )
    answer = yield from ask_coordinator(
        cluster,
        CoordinatorKind.GROUP,
        group_id,
        request,
        OffsetFetchResponse,
        _retriable_fault,
        timeout_ms=timeout_ms,
        max_version=LAST_VERSION_BY_NAME,
    )
    found: dict[TopicPartition, Committed] = {}
    for topic in answer.groups[0].topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name, one.partition_index)
            if one.error_code:
                code = error_code(one.error_code)
                raise KafkaError(code, f"committed offset of {partition} in group {group_id}: {code.name}")
            if one.committed_offset >= 0:
                found[partition] = Committed(one.committed_offset, one.committed_leader_epoch, one.metadata)
    return found


def _retriable_fault(answer: OffsetFetchResponse) -> int:
    (group,) = answer.groups
    if group.error_code:
        return group.error_code
    return next((p.error_code for t in group.topics for p in t.partitions if p.error_code), 0)
