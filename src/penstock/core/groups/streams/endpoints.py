"""Where an application can be asked for its state: the partitions behind each member that has an address for that."""

from __future__ import annotations

from collections.abc import Callable

from penstock.core.groups.streams.group import StreamsGroup, StreamsMember
from penstock.core.groups.streams.tasks import TaskIds
from penstock.core.groups.streams.topology import Topology
from penstock.protocol.generated.streams_group_heartbeat_response import (
    Endpoint,
    EndpointToPartitions,
    TopicPartition,
)


def endpoints(group: StreamsGroup, partition_count: Callable[[str], int]) -> list[EndpointToPartitions]:
    topology = group.topology
    if topology is None:
        return []
    return [
        EndpointToPartitions(
            user_endpoint=Endpoint(host=member.endpoint[0], port=member.endpoint[1]),
            active_partitions=_partitions(topology, member.assigned.active, partition_count),
            standby_partitions=_partitions(topology, member.assigned.standby, partition_count),
        )
        for member in group.members.values()
        if member.endpoint is not None
    ]


def changes(before: StreamsMember | None, member: StreamsMember) -> bool:
    """Whether something else can be asked of the member than before."""
    if before is None:
        return member.endpoint is not None
    if before.endpoint != member.endpoint:
        return True
    return member.endpoint is not None and before.assigned != member.assigned


def _partitions(topology: Topology, tasks: TaskIds, partition_count: Callable[[str], int]) -> list[TopicPartition]:
    """Of a topic with fewer partitions than others of its subtopology, those there are."""
    found = []
    for subtopology in topology.subtopologies:
        numbers = tasks.get(subtopology.name, ())
        for topic in subtopology.inputs:
            there = [number for number in numbers if number < partition_count(topic)]
            if there:
                found.append(TopicPartition(topic=topic, partitions=there))
    return found
