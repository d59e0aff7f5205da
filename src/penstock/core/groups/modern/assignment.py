"""Partitions by topic id: what a member has or is to have.

Lists are sorted and never empty. Every message and record has a structure of its own for the same two fields, so the
way to it is by the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

Assignment = dict[bytes, list[int]]
"""topic id -> partitions"""


T_co = TypeVar("T_co", covariant=True)


class _Partitions(Protocol):
    topic_id: bytes
    partitions: list[int]


class _MakesPartitions(Protocol[T_co]):
    def __call__(self, *, topic_id: bytes, partitions: list[int]) -> T_co: ...


def read(topics: Iterable[_Partitions]) -> Assignment:
    """From the structures of a message."""
    assignment: Assignment = {}
    for topic in topics:
        if topic.partitions:
            known = assignment.get(topic.topic_id)
            together = topic.partitions if known is None else [*known, *topic.partitions]
            assignment[topic.topic_id] = sorted(set(together))
    return assignment


def write(assignment: Mapping[bytes, Iterable[int]], structure: _MakesPartitions[T_co]) -> list[T_co]:
    """To the structures of a message."""
    return [structure(topic_id=topic_id, partitions=list(partitions)) for topic_id, partitions in assignment.items()]
