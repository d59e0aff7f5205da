"""StreamsGroupDescribe v0: a group's epochs and topology, its members, the tasks they have and are to have."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.streams import targets
from penstock.core.groups.streams.group import StreamsGroup, StreamsMember
from penstock.core.groups.streams.leaving import found
from penstock.core.groups.streams.tasks import NO_TASKS, Tasks, write
from penstock.core.groups.streams.topology import InternalTopic, Subtopology, Topology
from penstock.protocol.generated import streams_group_describe_response as told


def describe(state: State, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
    """`list[DescribedGroup]`, one for each id, in their order."""
    return Result([_described(state, group_id) for group_id in group_ids], after_writes=True)


def _described(state: State, group_id: str) -> told.DescribedGroup:
    try:
        group = found(state, group_id)
    except KafkaError as error:
        return told.DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    return told.DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        topology=None if group.topology is None else _topology(state, group_id, group.topology),
        members=[_member(group, member) for member in group.members.values()],
    )


def _topology(state: State, group_id: str, topology: Topology) -> told.Topology:
    """With the partitions that internal topics have, once that is known; else as the application declared them."""
    try:
        counts = targets.survey(state, group_id, topology).layout.counts
    except KafkaError:
        counts = {}
    subtopologies = [_subtopology(one, counts) for one in topology.subtopologies]
    return told.Topology(epoch=topology.epoch, subtopologies=subtopologies)


def _subtopology(one: Subtopology, counts: Mapping[str, int]) -> told.Subtopology:
    return told.Subtopology(
        subtopology_id=one.name,
        source_topics=list(one.sources),
        repartition_sink_topics=list(one.repartition_sinks),
        state_changelog_topics=[_topic(topic, counts) for topic in one.changelogs],
        repartition_source_topics=[_topic(topic, counts) for topic in one.repartition_sources],
    )


def _topic(topic: InternalTopic, counts: Mapping[str, int]) -> told.TopicInfo:
    return told.TopicInfo(
        name=topic.name,
        partitions=counts.get(topic.name, topic.partitions),
        replication_factor=topic.replication_factor,
        topic_configs=[told.KeyValue(key=key, value=value) for key, value in topic.configs],
    )


def _member(group: StreamsGroup, member: StreamsMember) -> told.Member:
    endpoint = member.endpoint
    return told.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else told.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[told.KeyValue(key=key, value=value) for key, value in member.tags],
        assignment=_tasks(member.assigned),
        target_assignment=_tasks(group.targets.get(member.member_id, NO_TASKS)),
    )


def _tasks(tasks: Tasks) -> told.Assignment:
    return told.Assignment(
        active_tasks=write(tasks.active, told.TaskIds),
        standby_tasks=write(tasks.standby, told.TaskIds),
        warmup_tasks=write(tasks.warmup, told.TaskIds),
    )
