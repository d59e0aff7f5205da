"""A topology laid over the topics there are: how many partitions its internal topics need, how many tasks that makes,
what is missing, and what does not fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import STREAMS_TASKS_MAX
from penstock.core.groups.streams.topology import InternalTopic, Subtopology, Topology

_NAMED_TOPICS_MAX = 5


class Status(IntEnum):
    """What a member is told of its group, by the numbers of StreamsGroupHeartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Fault(NamedTuple):
    status: Status
    detail: str


class Layout(NamedTuple):
    fault: Fault | None = None
    """why there are no tasks"""
    tasks: Mapping[str, int] = {}
    """subtopology -> how many tasks it has; in the order of the names"""
    counts: Mapping[str, int] = {}
    """internal topic -> how many partitions it has or is to have"""
    missing: tuple[InternalTopic, ...] = ()
    """internal topics to be made, with their partitions decided"""

    @property
    def is_ready(self) -> bool:
        return self.fault is None


class _Unfit(Exception):
    """The topics do not fit together."""


def lay_out(topology: Topology, partition_count: Callable[[str], int]) -> Layout:
    """`partition_count`: of a topic that is there; 0 where it is not. STREAMS_INVALID_TOPOLOGY where no topics could
    make it work."""
    sources = sorted({name for one in topology.subtopologies for name in one.sources})
    absent = [name for name in sources if not partition_count(name)]
    if absent:
        return Layout(Fault(Status.MISSING_SOURCE_TOPICS, f"Source topics {named(absent)} are missing."))
    try:
        counts = _decided(topology, partition_count)
        missing = _missing(topology, counts, partition_count)
    except _Unfit as fault:
        return Layout(Fault(Status.INCORRECTLY_PARTITIONED_TOPICS, str(fault)))
    tasks = {one.name: max(_counts(one.inputs, counts, partition_count)) for one in topology.subtopologies}
    if sum(tasks.values()) > STREAMS_TASKS_MAX:
        said = f"{sum(tasks.values())} tasks, more than the {STREAMS_TASKS_MAX} that a group may have"
        return Layout(Fault(Status.INCORRECTLY_PARTITIONED_TOPICS, f"The partitions of its topics make {said}."))
    if not missing:
        return Layout(None, tasks, counts)
    said = f"Internal topics are missing: {named([topic.name for topic in missing])}"
    return Layout(Fault(Status.MISSING_INTERNAL_TOPICS, said), tasks, counts, missing)


def _decided(topology: Topology, partition_count: Callable[[str], int]) -> dict[str, int]:
    """Repartition topics as many as what flows into them, or as their copartition groups want; changelogs as many as
    their subtopology has tasks."""
    counts = _repartition_counts(topology.subtopologies, partition_count)
    topics = {topic.name: topic for one in topology.subtopologies for topic in one.repartition_sources}
    for subtopology in topology.subtopologies:
        for names in subtopology.copartitioned:
            counts.update(_copartitioned(names, topics, counts, partition_count))
    for subtopology in topology.subtopologies:
        most = max(_counts(subtopology.inputs, counts, partition_count))
        counts.update({topic.name: most for topic in _own_changelogs(subtopology)})
    return counts


def _repartition_counts(subtopologies: Sequence[Subtopology], partition_count: Callable[[str], int]) -> dict[str, int]:
    """What is not fixed is found from upstream on, as far as it takes."""
    topics = [topic for one in subtopologies for topic in one.repartition_sources]
    counts = {topic.name: topic.partitions for topic in topics if topic.partitions}
    writing: dict[str, list[Subtopology]] = {}
    for one in subtopologies:
        for name in one.repartition_sinks:
            writing.setdefault(name, []).append(one)
    writers = {topic.name: writing.get(topic.name, []) for topic in topics if topic.name not in counts}
    if not all(writers.values()):
        raise _invalid("because a repartition source topic is never used as a sink topic.")
    while writers:
        found = {}
        for name, upstream in writers.items():
            known = [counts.get(source) or partition_count(source) for one in upstream for source in one.inputs]
            if any(known):
                found[name] = max(known)
        if not found:
            raise _invalid("There may be loops in the topology that cannot be resolved.")
        counts.update(found)
        writers = {name: upstream for name, upstream in writers.items() if name not in found}
    return counts


def _copartitioned(
    names: Sequence[str],
    repartition: Mapping[str, InternalTopic],
    counts: Mapping[str, int],
    partition_count: Callable[[str], int],
) -> dict[str, int]:
    """What the repartition topics among these that may have any number are to have."""
    outer = {name: partition_count(name) for name in names if name not in repartition}
    fixed = {name: counts[name] for name in names if name in repartition and repartition[name].partitions}
    flexible = [name for name in names if name in repartition and not repartition[name].partitions]
    decisive = outer or fixed
    if len(set(decisive.values())) > 1:
        said = named([f"{name}={count}" for name, count in sorted(decisive.items())])
        raise _Unfit(f"Following topics do not have the same number of partitions: [{{{said}}}]")
    wanted = next(iter(decisive.values()), 0) or max(counts[name] for name in flexible)
    for name, count in fixed.items():
        if count != wanted:
            said = f"Number of partitions [{count}] of repartition topic [{name}] doesn't match"
            raise _Unfit(f"{said} number of partitions [{wanted}] of the source topic.")
    return dict.fromkeys(flexible, wanted)


def _missing(
    topology: Topology, counts: Mapping[str, int], partition_count: Callable[[str], int]
) -> tuple[InternalTopic, ...]:
    wanted: dict[str, InternalTopic] = {}
    for subtopology in topology.subtopologies:
        for topic in (*subtopology.repartition_sources, *_own_changelogs(subtopology)):
            count = counts[topic.name]
            there = partition_count(topic.name)
            if there and there != count:
                said = f"Existing topic {topic.name} has different number of partitions"
                raise _Unfit(f"{said}: expected {count}, found {there}")
            if not there:
                wanted[topic.name] = InternalTopic(topic.name, count, topic.replication_factor, topic.configs)
    return tuple(wanted[name] for name in sorted(wanted))


def _own_changelogs(subtopology: Subtopology) -> Iterable[InternalTopic]:
    """A table that is kept in the very topic it is read from needs no other."""
    return (topic for topic in subtopology.changelogs if topic.name not in subtopology.sources)


def _counts(names: Iterable[str], counts: Mapping[str, int], partition_count: Callable[[str], int]) -> list[int]:
    return [partition_count(name) or counts[name] for name in names]


def named(names: Sequence[str]) -> str:
    """The first of them: a text must not grow with an application."""
    shown, more = names[:_NAMED_TOPICS_MAX], len(names) - _NAMED_TOPICS_MAX
    return ", ".join(shown) + (f" and {more} additional topics" if more > 0 else "")


def _invalid(why: str) -> KafkaError:
    said = "Failed to compute number of partitions for all repartition topics, "
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, said + why)
