"""What an application declares of itself: subtopologies, the topics each reads, and the ones to be made for it.

Everything is in the order of its names, so that two members that tell the same tell it equally.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """Made for the application: a changelog, or a topic to repartition by."""

    name: str
    partitions: int = 0
    """0: as many as fit what is upstream"""
    replication_factor: int = 0
    """0 or -1: the cluster's default"""
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Subtopology:
    name: str
    sources: tuple[str, ...] = ()
    """topics that exist without the application"""
    repartition_sources: tuple[InternalTopic, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    copartitioned: tuple[tuple[str, ...], ...] = ()
    """sets of topics that it reads and that must have equally many partitions"""

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*self.sources, *(topic.name for topic in self.repartition_sources))

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


@dataclass(frozen=True, slots=True)
class Topology:
    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()

    def required_topics(self) -> tuple[str, ...]:
        """Every topic without which there are no tasks, sorted."""
        names = dict.fromkeys(name for one in self.subtopologies for name in one.inputs)
        names.update(dict.fromkeys(topic.name for one in self.subtopologies for topic in one.changelogs))
        return tuple(sorted(names))

    def reader_of(self, topic: str) -> str | None:
        """The subtopology that reads a topic; there is at most one."""
        return next((one.name for one in self.subtopologies if topic in one.inputs), None)
