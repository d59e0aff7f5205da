"""ShareGroupDescribe v1: what an operator sees of share groups."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.share import assignor
from penstock.core.groups.share.group import ShareGroup, ShareMember
from penstock.core.groups.share.heartbeat import found
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.states import GroupState
from penstock.protocol.generated.share_group_describe_response import Assignment as ToldAssignment
from penstock.protocol.generated.share_group_describe_response import DescribedGroup, Member, TopicPartitions


def describe(state: State, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
    """`list[DescribedGroup]`, one for each id, in their order."""
    return Result([_described(state, group_id) for group_id in group_ids], after_writes=True)


def _described(state: State, group_id: str) -> DescribedGroup:
    try:
        group = found(state, group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=(GroupState.STABLE if group.members else GroupState.EMPTY).value,
        group_epoch=max(group.epoch, 0),
        assignment_epoch=max(group.target_epoch, 0),
        assignor_name=assignor.NAME,
        members=_described_members(state, group),
    )


def _described_members(state: State, group: ShareGroup) -> list[Member]:
    return [_described_member(state, member) for member in group.members.values()]


def _described_member(state: State, member: ShareMember) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        assignment=_told(state, member.assigned),
    )


def _told(state: State, assigned: Assignment) -> ToldAssignment:
    """Without topics that are gone: they have no name."""
    known = state.metadata.image.topics_by_id
    return ToldAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=known[topic_id].name, partitions=partitions)
            for topic_id, partitions in assigned.items()
            if topic_id in known
        ]
    )
