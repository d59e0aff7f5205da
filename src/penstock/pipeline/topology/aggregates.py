"""Counting, reducing, aggregating: of a stream without windows, and of a table whose rows come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.pipeline.topology.nodes import Graph, Keyed, Node, Step
from penstock.pipeline.topology.rows import UNKNOWN, Change, Row

Initial = Callable[[], Any]
Fold = Callable[[Any, Any, Any], Any]
"""(key, value, aggregate) to the new aggregate"""


class Store(Keyed):
    """Remembers a table's last value of each key, so that changes tell the old one."""

    kind = "table"
    is_table = True

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        old, new = step.state, row.value.new
        step.state = new
        yield row.to(Change(new, old))


class Latest(Keyed):
    """The rows of a stream as a table: the last value of each key; None deletes."""

    kind = "to-table"
    is_table = True

    def takes(self, row: Row, port: int) -> bool:
        return row.key is not None

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        old, step.state = step.state, row.value
        yield row.to(Change(row.value, old))


class Aggregate(Keyed):
    """One aggregate for each key; each parent has its own fold. Rows without a key or a value are left out."""

    kind = "aggregate"
    is_table = True

    def __init__(
        self,
        graph: Graph,
        parents: list[Node],
        initial: Initial,
        folds: list[Fold],
        functions: list[Any],
        name: str | None = None,
    ) -> None:
        super().__init__(graph, list(parents), functions, name)
        self.initial = initial
        self.folds = folds

    def takes(self, row: Row, port: int) -> bool:
        return row.key is not None and row.value is not None

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        old, timestamp = step.state or (None, row.timestamp)
        new = self.folds[port](row.key, row.value, self.initial() if old is None else old)
        timestamp = max(timestamp, row.timestamp)
        step.state = None if new is None else (new, timestamp)
        yield row.at(row.key, Change(new, old), timestamp)


class TableAggregate(Keyed):
    """Of a grouped table: what a row was is taken out, what it is now is put in."""

    kind = "table-aggregate"
    is_table = True

    def __init__(
        self,
        graph: Graph,
        parent: Node,
        initial: Initial,
        add: Fold,
        subtract: Fold,
        functions: list[Any],
        name: str | None = None,
    ) -> None:
        super().__init__(graph, [parent], functions, name)
        self.initial = initial
        self.add, self.subtract = add, subtract

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        change = row.value
        assert change.old is not UNKNOWN, "a table is grouped by its changes"
        old, timestamp = step.state or (None, row.timestamp)
        new = old
        if change.old is not None and new is not None:
            new = self.subtract(row.key, change.old, new)
        if change.new is not None:
            new = self.add(row.key, change.new, self.initial() if new is None else new)
        timestamp = max(timestamp, row.timestamp)
        step.state = None if new is None else (new, timestamp)
        yield row.at(row.key, Change(new, old), timestamp)
