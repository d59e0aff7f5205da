"""Joins by key: stream with stream in a window, stream with table, table with table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from penstock.pipeline.topology.functions import Joiner
from penstock.pipeline.topology.nodes import Graph, Keyed, Node, Step
from penstock.pipeline.topology.rows import Change, Row
from penstock.pipeline.topology.windows import JoinWindows

Kind = Literal["inner", "left", "outer"]


class StreamJoin(Keyed):
    """State: for either side, rows as [timestamp, value, headers, joined yet]. Each waits for as long as a partner may
    come; a row of an outer side that found none goes out alone when its window has closed."""

    kind = "stream-join"

    def __init__(
        self,
        graph: Graph,
        left: Node,
        right: Node,
        joiner: Joiner,
        windows: JoinWindows,
        kind: Kind,
        functions: list[Any],
        name: str | None = None,
    ) -> None:
        super().__init__(graph, [left, right], functions, name)
        self.joiner = joiner
        self.windows = windows
        self.alone = (kind in ("left", "outer"), kind == "outer")
        """Whether an unmatched row of the left, of the right goes out."""

    def takes(self, row: Row, port: int) -> bool:
        return row.value is not None and (row.key is not None or self.alone[port])

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        if row.key is None:
            yield row.to(self._join(None, row.value, None, port))
            return
        if step.state is None:
            step.state = ([], [])
        joined = False
        low, high = self._reach(row.timestamp, port)
        for other in sorted(step.state[1 - port], key=_time):
            if low <= other[0] <= high:
                joined = other[3] = True
                value = self._join(row.key, row.value, other[1], port)
                yield row.at(row.key, value, max(row.timestamp, other[0]))
        if not joined and self.alone[port] and self._closes(row.timestamp, port) <= step.now:
            joined = True
            yield row.to(self._join(row.key, row.value, None, port))
        if self._forgets(row.timestamp) > step.now:
            step.state[port].append([row.timestamp, row.value, row.headers, joined])
            step.set_timer(self._forgets(row.timestamp))
            if not joined and self.alone[port]:
                step.set_timer(self._closes(row.timestamp, port))

    def on_timer(self, step: Step, at: int) -> Iterable[Row]:
        if step.state is None:
            return
        waiting = [(one[0], port, one) for port in (0, 1) if self.alone[port] for one in step.state[port] if not one[3]]
        for timestamp, port, one in sorted(waiting, key=lambda found: found[:2]):
            if self._closes(timestamp, port) <= at:
                one[3] = True
                yield step.emit(step.key, self._join(step.key, one[1], None, port), timestamp, one[2])
        for side in step.state:
            side[:] = [one for one in side if self._forgets(one[0]) > at]
        if not any(step.state):
            step.state = None

    def _join(self, key: Any, own: Any, other: Any, port: int) -> Any:
        return self.joiner(key, own, other) if port == 0 else self.joiner(key, other, own)

    def _reach(self, timestamp: int, port: int) -> tuple[int, int]:
        before, after = self.windows.before_ms, self.windows.after_ms
        return (timestamp - before, timestamp + after) if port == 0 else (timestamp - after, timestamp + before)

    def _closes(self, timestamp: int, port: int) -> int:
        return self._reach(timestamp, port)[1] + self.windows.grace_ms + 1

    def _forgets(self, timestamp: int) -> int:
        return timestamp + self.windows.before_ms + self.windows.after_ms + self.windows.grace_ms + 1


class LookUp(Keyed):
    """A stream's row (port 0) finds the value that the table (port 1) has for its key then. State: that value."""

    kind = "table-look-up"

    def __init__(
        self,
        graph: Graph,
        stream: Node,
        table: Node,
        joiner: Joiner,
        kind: Kind,
        functions: list[Any],
        key_of: Callable[[Any, Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(graph, [stream, table], functions, name)
        self.joiner = joiner
        self.left = kind == "left"
        self._key_of = key_of
        """Which key of the table a stream's row asks for; else its own."""

    def key_of(self, row: Row, port: int) -> Any:
        return row.key if port == 1 or self._key_of is None else self._key_of(row.key, row.value)

    def takes(self, row: Row, port: int) -> bool:
        """A row without a value joins with nothing, and has none to find a key in."""
        return port == 1 or row.value is not None

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        if port == 1:
            step.state = row.value.new
        elif self.left or step.state is not None:
            yield row.to(self.joiner(row.key, row.value, step.state))


class TableJoin(Keyed):
    """Two tables by key. State: [left, right, timestamp of left, of right]."""

    kind = "table-join"
    is_table = True

    def __init__(
        self,
        graph: Graph,
        left: Node,
        right: Node,
        joiner: Joiner,
        kind: Kind,
        functions: list[Any],
        name: str | None = None,
    ) -> None:
        super().__init__(graph, [left, right], functions, name)
        self.joiner = joiner
        self.join_kind = kind

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        sides = step.state or [None, None, row.timestamp, row.timestamp]
        old = self._joined(row.key, sides)
        sides = list(sides)
        sides[port], sides[2 + port] = row.value.new, row.timestamp
        new = self._joined(row.key, sides)
        step.state = None if sides[0] is None and sides[1] is None else sides
        if new is not None or old is not None:
            other = sides[3 - port] if sides[1 - port] is not None else row.timestamp
            yield row.at(row.key, Change(new, old), max(row.timestamp, other))

    def _joined(self, key: Any, sides: list[Any]) -> Any:
        left, right = sides[:2]
        if left is None and (right is None or self.join_kind != "outer"):
            return None
        if right is None and self.join_kind == "inner":
            return None
        return self.joiner(key, left, right)


def _time(one: list[Any]) -> int:
    return int(one[0])
