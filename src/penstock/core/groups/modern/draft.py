"""A group with the changes of one event: each is written as a record, and is in the group that the next step looks at.

The stored group itself stays as it is until the records are replayed. What changes there are, each type of group adds.
"""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

from penstock.core.coordinator.result import CoordinatorRecord


class Copied(Protocol):
    def copy(self) -> Self: ...


G = TypeVar("G", bound=Copied)


class Draft(Generic[G]):
    __slots__ = ("_is_own", "group", "records")

    def __init__(self, group: G, *, is_new: bool = False) -> None:
        self.group = group
        self.records: list[CoordinatorRecord] = []
        self._is_own = is_new

    def _changing(self) -> G:
        if not self._is_own:
            self.group, self._is_own = self.group.copy(), True
        return self.group
