"""Holding back the changes of a table: until their window has closed, or for some time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.pipeline.topology.nodes import Graph, Keyed, Node, Step
from penstock.pipeline.topology.rows import Change, Row


class Suppress(Keyed):
    """State: (time of going out, first old value, last new value, its timestamp). The changes in between are lost:
    that is what it is for."""

    kind = "suppress"
    is_table = True

    def __init__(
        self,
        graph: Graph,
        parent: Node,
        release: Callable[[Row], int],
        *,
        drop_deletes: bool,
        functions: Iterable[Any] = (),
        name: str | None = None,
    ) -> None:
        super().__init__(graph, [parent], functions, name)
        self.release = release
        """of the first row that is held: the stream time at which it goes out"""
        self.drop_deletes = drop_deletes
        """A windowed result that was taken back before anybody saw it is not told of."""

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        at, old = step.state[:2] if step.state else (self.release(row), row.value.old)
        if step.state is None and at <= step.now:
            return (row,)  # its window is closed already
        step.state = (at, old, row.value.new, row.timestamp)
        step.set_timer(at)
        return ()

    def on_timer(self, step: Step, at: int) -> Iterable[Row]:
        if step.state is None or step.state[0] != at:
            return
        _, old, new, timestamp = step.state
        step.state = None
        if new is not None or not self.drop_deletes:
            yield step.emit(step.key, Change(new, old), timestamp)
