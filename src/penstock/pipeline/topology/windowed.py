"""Aggregates by window: tumbling, hopping, unlimited, sliding, session.

A window closes when stream time has reached its end and the grace after it; rows for closed windows are left out, and
the window is forgotten. With `on_close` a window's value goes out once, when it closes; else at each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.pipeline.topology.aggregates import Fold, Initial
from penstock.pipeline.topology.nodes import Graph, Keyed, Node, Step
from penstock.pipeline.topology.rows import Change, Row, Windowed
from penstock.pipeline.topology.windows import FOR_EVER, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows


class WindowAggregate(Keyed):
    """What the three kinds of windows have in common."""

    is_table = True

    def __init__(
        self,
        graph: Graph,
        parents: list[Node],
        initial: Initial,
        folds: list[Fold],
        functions: list[Any],
        *,
        on_close: bool,
        name: str | None = None,
    ) -> None:
        super().__init__(graph, list(parents), functions, name)
        self.initial = initial
        self.folds = folds
        self.on_close = on_close

    def takes(self, row: Row, port: int) -> bool:
        return row.key is not None and row.value is not None

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        if step.state is None:
            step.state = {}
        changed = self._add(step, row, self.folds[port])
        if not step.state:
            step.state = None
        return () if self.on_close else changed

    def _add(self, step: Step, row: Row, fold: Fold) -> list[Row]:
        raise NotImplementedError

    def _fold(self, fold: Fold, row: Row, aggregate: Any) -> Any:
        return fold(row.key, row.value, self.initial() if aggregate is None else aggregate)


class TimeAggregate(WindowAggregate):
    """State: start of the window to (aggregate, timestamp)."""

    kind = "window"

    def __init__(self, *args: Any, windows: TimeWindows | UnlimitedWindows, **others: Any) -> None:
        super().__init__(*args, **others)
        self.windows = windows

    def _starts(self, timestamp: int) -> Iterable[int]:
        if isinstance(self.windows, UnlimitedWindows):
            return [self.windows.start_ms] if timestamp >= self.windows.start_ms else []
        return self.windows.starts(timestamp)

    def _end(self, start: int) -> int:
        return FOR_EVER if isinstance(self.windows, UnlimitedWindows) else start + self.windows.size_ms

    def _add(self, step: Step, row: Row, fold: Fold) -> list[Row]:
        changed = []
        for start in self._starts(row.timestamp):
            end = self._end(start)
            if isinstance(self.windows, TimeWindows):
                if end + self.windows.grace_ms <= step.now:
                    continue  # closed
                step.set_timer(end + self.windows.grace_ms)
            old, timestamp = step.state.get(start, (None, row.timestamp))
            new = self._fold(fold, row, old)
            timestamp = max(timestamp, row.timestamp)
            if new is None:
                step.state.pop(start, None)
            else:
                step.state[start] = (new, timestamp)
            changed.append(row.at(Windowed(row.key, start, end), Change(new, old), timestamp))
        return changed

    def on_timer(self, step: Step, at: int) -> Iterable[Row]:
        assert isinstance(self.windows, TimeWindows)
        start = at - self.windows.grace_ms - self.windows.size_ms
        kept = (step.state or {}).pop(start, None)
        step.state = step.state or None
        if kept is not None and self.on_close:
            yield step.emit(Windowed(step.key, start, self._end(start)), Change(kept[0], None), kept[1])


class SlidingAggregate(WindowAggregate):
    """State: "windows", start to (aggregate, timestamp), and "rows", (timestamp, value, port's fold) as they came.

    A row at t belongs to every window that begins between t - difference and t. Windows come to be as Kafka Streams
    makes them: the one that ends with a row, and the one that begins right after a row and holds another. The end
    belongs to a window, so it closes when stream time is past its end and grace.
    """

    kind = "sliding-window"

    def __init__(self, *args: Any, windows: SlidingWindows, **others: Any) -> None:
        super().__init__(*args, **others)
        self.windows = windows

    def _closes(self, start: int) -> int:
        return start + self.windows.difference_ms + self.windows.grace_ms + 1

    def _add(self, step: Step, row: Row, fold: Fold) -> list[Row]:
        size, at = self.windows.difference_ms, row.timestamp
        if self._closes(at) <= step.now:
            return []
        if not step.state:
            step.state = {"windows": {}, "rows": []}
        windows, rows = step.state["windows"], step.state["rows"]
        rows.append((at, row.value, self.folds.index(fold)))
        times = {one[0] for one in rows}
        starts = {max(0, at - size)}
        starts |= {time + 1 for time in times if at - size <= time + 1 <= at}
        starts |= {start for start in windows if start <= at <= start + size}
        if any(at < time <= at + 1 + size for time in times):
            starts.add(at + 1)
        changed = []
        for start in sorted(starts):
            if self._closes(start) > step.now:
                changed += self._change(step, row, start, windows, rows)
        if changed:
            step.set_timer(self._closes(at + 1))
        else:
            rows.pop()  # too late for every window that there is: it leaves no trace
        if not rows and not windows:
            step.state = {}
        return changed

    def _change(self, step: Step, row: Row, start: int, windows: dict[int, Any], rows: list[Any]) -> list[Row]:
        end = start + self.windows.difference_ms
        old = windows.get(start)
        if old is not None and start > row.timestamp:
            return []  # the row is not in it
        if old is None:
            aggregate, timestamp = None, 0
            for at, value, port in rows:
                if start <= at <= end:
                    aggregate = self._fold(self.folds[port], row.to(value), aggregate)
                    timestamp = max(timestamp, at)
        else:
            aggregate, timestamp = old
            aggregate = self._fold(self.folds[rows[-1][2]], row, aggregate)
            timestamp = max(timestamp, row.timestamp)
        windows[start] = (aggregate, timestamp)
        step.set_timer(self._closes(start))
        before = None if old is None else old[0]
        return [row.at(Windowed(row.key, start, end), Change(aggregate, before), timestamp)]

    def on_timer(self, step: Step, at: int) -> Iterable[Row]:
        if not step.state:
            return
        windows = step.state["windows"]
        start = at - self._closes(0)
        kept = windows.pop(start, None)
        # A row matters as long as a window that holds it, or begins right after it, can come to be.
        step.state["rows"] = [one for one in step.state["rows"] if self._closes(one[0] + 1) > at]
        if kept is not None and self.on_close:
            end = start + self.windows.difference_ms
            yield step.emit(Windowed(step.key, start, end), Change(kept[0], None), kept[1])
        if not windows and not step.state["rows"]:
            step.state = None


class SessionAggregate(WindowAggregate):
    """State: (start, end) of each session to its aggregate. A row that joins sessions deletes them and makes one."""

    kind = "session-window"

    def __init__(
        self, *args: Any, windows: SessionWindows, merge: Callable[[Any, Any, Any], Any], **others: Any
    ) -> None:
        super().__init__(*args, **others)
        self.windows = windows
        self.merge = merge
        """(key, one aggregate, the other) to that of both"""

    def _closes(self, end: int) -> int:
        return end + self.windows.gap_ms + self.windows.grace_ms + 1

    def _add(self, step: Step, row: Row, fold: Fold) -> list[Row]:
        gap, start, end = self.windows.gap_ms, row.timestamp, row.timestamp
        found = sorted(one for one in step.state if one[1] >= row.timestamp - gap and one[0] <= row.timestamp + gap)
        aggregate: Any = None
        for one in found:
            start, end = min(start, one[0]), max(end, one[1])
            kept = step.state[one]
            aggregate = kept if aggregate is None else self.merge(row.key, aggregate, kept)
        if self._closes(end) <= step.now:
            return []
        old = step.state.get((start, end)) if found == [(start, end)] else None
        changed = []
        for one in found:
            kept = step.state.pop(one)
            step.clear_timer(self._closes(one[1]))
            if one != (start, end):
                changed.append(row.at(Windowed(row.key, *one), Change(None, kept), one[1]))
        for one in step.state:
            step.set_timer(self._closes(one[1]))  # another session may end at the same time
        new = self._fold(fold, row, aggregate)
        if new is not None:
            step.state[start, end] = new
            step.set_timer(self._closes(end))
        changed.append(row.at(Windowed(row.key, start, end), Change(new, old), end))
        return changed

    def on_timer(self, step: Step, at: int) -> Iterable[Row]:
        end = at - self.windows.gap_ms - self.windows.grace_ms - 1
        closed = sorted(one for one in step.state or () if one[1] == end)
        for one in closed:
            kept = step.state.pop(one)
            if self.on_close:
                yield step.emit(Windowed(step.key, *one), Change(kept, None), one[1])
        step.state = step.state or None
