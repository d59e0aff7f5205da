"""A table joined with another by a key that is in its values.

Left rows subscribe at the right key (`Subscriptions`, keyed by the foreign key); that sends the right value to the left
key (`Answers`, keyed by the left key), now and at each change. An answer counts only if it was given for the value that
the left row still has: its version tells. An answer that an older left value asked for is let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from zlib import crc32

from penstock.pipeline.topology.functions import Joiner
from penstock.pipeline.topology.nodes import Graph, Keyed, Node, Step
from penstock.pipeline.topology.packing import pack_equal, pack_key
from penstock.pipeline.topology.rows import Change, Row


class Subscription(NamedTuple):
    key: Any
    foreign: Any
    version: int
    wanted: bool


class Answer(NamedTuple):
    version: int
    right: Any


def version_of(value: Any) -> int:
    """Equal for equal values, also where one of them has been packed and unpacked in between."""
    return crc32(pack_equal(value))


def subscriptions(row: Row, foreign_key: Callable[[Any, Any], Any]) -> Iterable[Row]:
    """What a change of the left table says to the right keys: the old one first."""
    change = row.value
    old = None if change.old is None else foreign_key(row.key, change.old)
    new = None if change.new is None else foreign_key(row.key, change.new)
    if old is not None and old != new:
        yield row.to(Subscription(row.key, old, 0, False))
    if new is not None:
        yield row.to(Subscription(row.key, new, version_of(change.new), True))


class Subscriptions(Keyed):
    """Port 0: subscriptions; port 1: the right table. State: the right value and its timestamp; entries: left key to
    (key, version). An answer to a left row has the later of both times, one that the right row sends has its own."""

    kind = "foreign-key-index"

    def key_of(self, row: Row, port: int) -> Any:
        return row.value.foreign if port == 0 else row.key

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        if port == 0:
            asked = row.value
            step.put(pack_key(asked.key), (asked.key, asked.version) if asked.wanted else None)
            if asked.wanted:
                right, timestamp = step.state or (None, row.timestamp)
                yield row.at(asked.key, Answer(asked.version, right), max(row.timestamp, timestamp))
            return
        right = row.value.new
        step.state = None if right is None else (right, row.timestamp)
        for _, (key, version) in step.scan():
            yield row.keyed(key, Answer(version, right))


class Answers(Keyed):
    """Port 0: changes of the left table; port 1: answers. State: [left, version, foreign, right, joined, timestamp]."""

    kind = "foreign-key-join"
    is_table = True

    def __init__(
        self,
        graph: Graph,
        left: Node,
        answers: Node,
        foreign_key: Callable[[Any, Any], Any],
        joiner: Joiner,
        *,
        keep_left: bool,
        functions: list[Any],
        name: str | None = None,
    ) -> None:
        super().__init__(graph, [left, answers], functions, name)
        self.foreign_key = foreign_key
        self.joiner = joiner
        self.keep_left = keep_left

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        left, version, joined = step.state or (None, 0, None)
        if port == 0:
            left = row.value.new
            foreign = None if left is None else self.foreign_key(row.key, left)
            if foreign is not None:
                step.state = (left, version_of(left), joined)
                return  # its answer is on the way
            new = self.joiner(row.key, left, None) if left is not None and self.keep_left else None
        elif left is None or row.value.version != version:
            return
        elif row.value.right is None and not self.keep_left:
            new = None
        else:
            new = self.joiner(row.key, left, row.value.right)
        step.state = None if left is None else (left, version if port else 0, new)
        if new is not None or joined is not None:
            yield row.to(Change(new, joined))
