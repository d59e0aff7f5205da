"""ConsumerGroupDescribe v0-1: a group's epochs, its members, what they have and what they are to have."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember, plain
from penstock.core.groups.consumer.targets import assignor_name
from penstock.core.groups.modern import assignment as modern
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.state import RequestContext, State
from penstock.protocol.generated.consumer_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def describe(state: State, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
    """`list[DescribedGroup]`, one for each id, in their order."""
    return Result([_described(state, group_id) for group_id in group_ids], after_writes=True)


def _described(state: State, group_id: str) -> DescribedGroup:
    group = state.store.consumers.get(group_id)
    if group is None:
        known = group_id in state.store.foreign or state.find(group_id) is not None
        said = f"Group {group_id} is not a consumer group." if known else f"Group {group_id} not found."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=said)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor_name(group, state.config.consumer.assignors),
        members=[_member(state.metadata, group, member) for member in group.members.values()],
    )


def _member(metadata: Metadata, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(metadata, plain(member.assigned)),
        target_assignment=_assignment(metadata, group.target.get(member.member_id, {})),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(metadata: Metadata, assignment: modern.Assignment) -> Assignment:
    """Topics that are gone meanwhile have no name."""
    topics = metadata.image.topics_by_id
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
            if topic_id in topics
        ]
    )
