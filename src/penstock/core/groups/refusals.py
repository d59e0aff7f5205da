"""The answers to requests that are refused as a whole, each in the shape of its API."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.protocol.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from penstock.protocol.generated.delete_groups_response import DeletableGroupResult
from penstock.protocol.generated.describe_groups_response import DescribedGroup
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_response import LeaveGroupResponse
from penstock.protocol.generated.list_groups_response import ListGroupsResponse
from penstock.protocol.generated.offset_commit_request import OffsetCommitRequest
from penstock.protocol.generated.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.generated.offset_delete_response import OffsetDeleteResponse
from penstock.protocol.generated.offset_fetch_response import OffsetFetchResponseGroup
from penstock.protocol.generated.sync_group_response import SyncGroupResponse
from penstock.protocol.generated.txn_offset_commit_request import TxnOffsetCommitRequest
from penstock.protocol.generated.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

NULLABLE_PROTOCOL_FROM = 7


def join(request: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=request.member_id)


def fit_join(response: JoinGroupResponse, api_version: int) -> JoinGroupResponse:
    """Before version 7 a protocol's name cannot be null."""
    if api_version < NULLABLE_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response


def sync(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)


def heartbeat(error: ErrorCode) -> HeartbeatResponse:
    """A coordinator that is still loading takes a heartbeat on trust: the member is to stay."""
    loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error)


def consumer_heartbeat(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def leave(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


def commit_offsets(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def commit_in_transaction(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def fetch_offsets(group_id: str, error: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group_id, error_code=error)


def delete_offsets(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


def describe(group_ids: list[str], error: ErrorCode) -> list[DescribedGroup]:
    return [DescribedGroup(group_id=group_id, error_code=error) for group_id in group_ids]


def list_groups(error: ErrorCode) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error)


def delete_groups(group_ids: list[str], error: ErrorCode) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(group_id=group_id, error_code=error) for group_id in group_ids]
