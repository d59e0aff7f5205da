"""Tasks by role: what a member has, says to have, or is to have.

Numbers are sorted, without repeats, and no subtopology stands there without one. Every message and record has a
structure of its own for the same two fields, so the way to it is by the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

TaskIds = Mapping[str, tuple[int, ...]]
"""subtopology -> partitions; never changed in place"""
Task = tuple[str, int]
"""a subtopology and a partition"""

T_co = TypeVar("T_co", covariant=True)


class Tasks(NamedTuple):
    active: TaskIds = {}
    standby: TaskIds = {}
    """copies of the state of tasks that are active elsewhere"""
    warmup: TaskIds = {}
    """as standby, until the task may move here; none is ever assigned, as in Kafka 4.3"""

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def has_any_of(self, other: Tasks) -> bool:
        """In the same role."""
        return any(
            not frozenset(mine.get(subtopology, ())).isdisjoint(numbers)
            for mine, theirs in zip(self, other, strict=True)
            for subtopology, numbers in theirs.items()
        )

    def is_within(self, other: Tasks) -> bool:
        return all(
            frozenset(numbers) <= frozenset(theirs.get(subtopology, ()))
            for mine, theirs in zip(self, other, strict=True)
            for subtopology, numbers in mine.items()
        )


NO_TASKS = Tasks()


class _TaskIds(Protocol):
    subtopology_id: str
    partitions: list[int]


class _MakesTaskIds(Protocol[T_co]):
    def __call__(self, *, subtopology_id: str, partitions: list[int]) -> T_co: ...


def each(tasks: TaskIds) -> Iterator[Task]:
    return ((subtopology, number) for subtopology, numbers in tasks.items() for number in numbers)


def gathered(tasks: Iterable[Task]) -> TaskIds:
    found: dict[str, list[int]] = {}
    for subtopology, number in sorted(set(tasks)):
        found.setdefault(subtopology, []).append(number)
    return {subtopology: tuple(numbers) for subtopology, numbers in found.items()}


def read(structures: Iterable[_TaskIds]) -> TaskIds:
    """From the structures of a message."""
    return gathered((one.subtopology_id, number) for one in structures for number in one.partitions)


def write(tasks: TaskIds, structure: _MakesTaskIds[T_co]) -> list[T_co]:
    """To the structures of a message."""
    return [structure(subtopology_id=subtopology, partitions=list(numbers)) for subtopology, numbers in tasks.items()]
