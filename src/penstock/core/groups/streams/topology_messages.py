"""A topology from the request that declares it, and from and to the record that keeps it.

The messages say which topics go together by where they stand in the lists; here they are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import STREAMS_TOPOLOGY_NAMES_MAX
from penstock.core.groups.modern.requests import check
from penstock.core.groups.streams.topology import InternalTopic, Subtopology, Topology
from penstock.protocol.generated import streams_group_heartbeat_request as asked
from penstock.protocol.generated import streams_group_topology_value as kept


class _Pair(Protocol):
    key: str
    value: str


class _TopicInfo(Protocol):
    name: str
    partitions: int
    replication_factor: int

    @property
    def topic_configs(self) -> Sequence[_Pair]: ...


class _Together(Protocol):
    source_topics: list[int]
    repartition_source_topics: list[int]


class _Subtopology(Protocol):
    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]

    @property
    def state_changelog_topics(self) -> Sequence[_TopicInfo]: ...
    @property
    def repartition_source_topics(self) -> Sequence[_TopicInfo]: ...
    @property
    def copartition_groups(self) -> Sequence[_Together]: ...


def from_request(topology: asked.Topology) -> Topology:
    """STREAMS_INVALID_TOPOLOGY where it contradicts itself, or is larger than anybody's application."""
    check(topology.epoch >= 0, "Topology epoch must be non-negative.")
    if _size(topology) > STREAMS_TOPOLOGY_NAMES_MAX:
        raise _invalid(f"The topology names more than {STREAMS_TOPOLOGY_NAMES_MAX} subtopologies and topics.")
    made = _read(topology.epoch, topology.subtopologies)
    names = [one.name for one in made.subtopologies]
    if len(set(names)) != len(names):
        raise _invalid("Two subtopologies have the same id.")
    for one in made.subtopologies:
        if not one.inputs:
            raise _invalid(f"Subtopology {one.name} does not contain any source topics.")
        for topic in one.changelogs:
            if topic.partitions:
                said = f"Changelog topic {topic.name} must have an undefined partition count"
                raise _invalid(f"{said}, but it is set to {topic.partitions}.")
        if any(topic.partitions < 0 for topic in one.repartition_sources):
            raise _invalid(f"Subtopology {one.name} has a repartition topic with less than no partitions.")
    return made


def from_record(value: kept.StreamsGroupTopologyValue) -> Topology:
    return _read(value.epoch, value.subtopologies)


def to_record(topology: Topology) -> kept.StreamsGroupTopologyValue:
    subtopologies = [_kept(one) for one in topology.subtopologies]
    return kept.StreamsGroupTopologyValue(epoch=topology.epoch, subtopologies=subtopologies)


def _size(topology: asked.Topology) -> int:
    return sum(
        1
        + len(one.source_topics)
        + len(one.repartition_sink_topics)
        + len(one.repartition_source_topics)
        + len(one.state_changelog_topics)
        + sum(1 + len(group.source_topics) + len(group.repartition_source_topics) for group in one.copartition_groups)
        for one in topology.subtopologies
    )


def _read(epoch: int, subtopologies: Iterable[_Subtopology]) -> Topology:
    made = (_subtopology(one) for one in subtopologies)
    return Topology(epoch, tuple(sorted(made, key=lambda one: one.name)))


def _subtopology(one: _Subtopology) -> Subtopology:
    repartition = [topic.name for topic in one.repartition_source_topics]
    together = (
        (*_named(one.source_topics, group.source_topics), *_named(repartition, group.repartition_source_topics))
        for group in one.copartition_groups
    )
    return Subtopology(
        one.subtopology_id,
        tuple(sorted(set(one.source_topics))),
        _internal(one.repartition_source_topics),
        tuple(sorted(set(one.repartition_sink_topics))),
        _internal(one.state_changelog_topics),
        tuple(sorted(tuple(sorted(set(names))) for names in together if names)),
    )


def _named(names: Sequence[str], places: Sequence[int]) -> list[str]:
    if not all(0 <= place < len(names) for place in places):
        raise _invalid("A copartition group names a topic that is not there.")
    return [names[place] for place in places]


def _internal(topics: Iterable[_TopicInfo]) -> tuple[InternalTopic, ...]:
    made = {
        one.name: InternalTopic(
            one.name,
            one.partitions,
            one.replication_factor,
            tuple(sorted((config.key, config.value) for config in one.topic_configs)),
        )
        for one in topics
    }
    return tuple(made[name] for name in sorted(made))


def _kept(one: Subtopology) -> kept.Subtopology:
    sources = {name: place for place, name in enumerate(one.sources)}
    repartition = {topic.name: place for place, topic in enumerate(one.repartition_sources)}
    return kept.Subtopology(
        subtopology_id=one.name,
        source_topics=list(one.sources),
        state_changelog_topics=[_kept_topic(topic) for topic in one.changelogs],
        repartition_sink_topics=list(one.repartition_sinks),
        repartition_source_topics=[_kept_topic(topic) for topic in one.repartition_sources],
        copartition_groups=[
            kept.CopartitionGroup(
                source_topics=[sources[name] for name in names if name in sources],
                repartition_source_topics=[repartition[name] for name in names if name in repartition],
            )
            for names in one.copartitioned
        ],
    )


def _kept_topic(topic: InternalTopic) -> kept.TopicInfo:
    return kept.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[kept.TopicConfig(key=key, value=value) for key, value in topic.configs],
    )


def _invalid(said: str) -> KafkaError:
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, said)
