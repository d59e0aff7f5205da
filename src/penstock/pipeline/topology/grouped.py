"""Streams and tables that were grouped: what can be counted, reduced, aggregated, with windows and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.pipeline.topology.aggregates import Aggregate, Fold, TableAggregate
from penstock.pipeline.topology.functions import fold_by_arity, maker, reducer
from penstock.pipeline.topology.nodes import Node
from penstock.pipeline.topology.tables import Table
from penstock.pipeline.topology.windowed import SessionAggregate, SlidingAggregate, TimeAggregate
from penstock.pipeline.topology.windows import SessionWindows, SlidingWindows, UnlimitedWindows, Windows

if TYPE_CHECKING:
    from penstock.pipeline.topology.streams import Pipeline

Function = Callable[..., Any]


class Grouped:
    """Rows by key, perhaps by window."""

    def __init__(self, pipeline: Pipeline, key: Any) -> None:
        self.pipeline = pipeline
        self._key = key
        self._windows: Windows | None = None
        self._on_close = False

    def _set(self, windows: Windows, on_close: bool) -> None:
        if not isinstance(windows, Windows):
            raise TypeError(
                f"windowed_by: {windows!r} is no window of an aggregate; "
                'say for example TimeWindows.of("1 minute"), or Sliding-, Session- or UnlimitedWindows'
            )
        if on_close and isinstance(windows, UnlimitedWindows):
            raise TypeError("windowed_by: unlimited windows never close, so on_close=True would give nothing")
        self._windows, self._on_close = windows, on_close

    def _check_merge(self, merge: Function | None) -> None:
        if merge is not None and not isinstance(self._windows, SessionWindows):
            raise TypeError("aggregate: merge= is for session windows, which grow together; others have no use for it")

    def _made(
        self,
        parents: list[Node],
        initial: Callable[[], Any],
        folds: list[Fold],
        functions: list[Any],
        merge: Function | None,
        to: Any,
        name: str | None,
    ) -> Table:
        graph, windows = self.pipeline.graph, self._windows
        node: Node
        if windows is None:
            node = Aggregate(graph, parents, initial, folds, functions, name)
            return Table(self.pipeline, node, self._key, to, knows_old=True)
        options: dict[str, Any] = {"on_close": self._on_close, "name": name}
        if isinstance(windows, SessionWindows):
            if merge is None:
                raise TypeError("an aggregate over session windows needs merge=: of two aggregates one")
            both = fold_by_arity(merge, "merge")
            options["merge"] = lambda key, one, other: both(key, other, one)
            node = SessionAggregate(graph, parents, initial, folds, functions, windows=windows, **options)
        elif isinstance(windows, SlidingWindows):
            node = SlidingAggregate(graph, parents, initial, folds, functions, windows=windows, **options)
        else:
            node = TimeAggregate(graph, parents, initial, folds, functions, windows=windows, **options)
        return Table(self.pipeline, node, self._key, to, knows_old=True, windows=windows)


class Cogrouped(Grouped):
    """Several grouped streams that go into one aggregate, each by its own function."""

    def __init__(self, pipeline: Pipeline, parts: list[tuple[Node, Function]], key: Any) -> None:
        super().__init__(pipeline, key)
        self._parts = parts

    def cogroup(self, other: GroupedStream, function: Function) -> Cogrouped:
        if not isinstance(other, GroupedStream):
            raise TypeError(f"cogroup: a {type(other).__name__} is no grouped stream; say group_by_key() or group_by()")
        _check_before_windows(self, other)
        return Cogrouped(self.pipeline, [*self._parts, (other.node, function)], self._key)

    def windowed_by(self, windows: Windows, *, on_close: bool = False) -> Cogrouped:
        """`on_close`: a window's value goes out once, when it has closed."""
        made = Cogrouped(self.pipeline, self._parts, self._key)
        made._set(windows, on_close)
        return made

    def aggregate(
        self, initial: Callable[[], Any], *, merge: Function | None = None, to: Any = None, name: str | None = None
    ) -> Table:
        """`merge`: for session windows, of two aggregates one."""
        self._check_merge(merge)
        folds = [fold_by_arity(function, "cogroup") for _, function in self._parts]
        functions = [initial, merge, *(function for _, function in self._parts)]
        parents = [node for node, _ in self._parts]
        return self._made(parents, maker(initial, "aggregate"), folds, functions, merge, to or _type(initial), name)


class GroupedStream(Grouped):
    """A stream by key."""

    def __init__(self, pipeline: Pipeline, node: Node, key: Any, value: Any) -> None:
        super().__init__(pipeline, key)
        self.node = node
        self._value = value

    def cogroup(self, function: Function) -> Cogrouped:
        """Begin an aggregate over several streams: this one goes in by `function`."""
        _check_before_windows(self)
        return Cogrouped(self.pipeline, [(self.node, function)], self._key)

    def windowed_by(self, windows: Windows, *, on_close: bool = False) -> GroupedStream:
        """`on_close`: a window's value goes out once, when it has closed."""
        made = GroupedStream(self.pipeline, self.node, self._key, self._value)
        made._set(windows, on_close)
        return made

    def count(self, *, name: str | None = None) -> Table:
        return self._made([self.node], int, [_count], [], _sum, int, name or "count")

    def reduce(self, function: Function, *, name: str | None = None) -> Table:
        """Of (the value so far, the next) one."""
        reducer(function, "reduce")

        def fold(key: Any, value: Any, aggregate: Any) -> Any:
            return value if aggregate is _FIRST else function(aggregate, value)

        return self._made([self.node], _first, [fold], [function], function, self._value, name)

    def aggregate(
        self,
        initial: Callable[[], Any],
        function: Function,
        *,
        merge: Function | None = None,
        to: Any = None,
        name: str | None = None,
    ) -> Table:
        """Of (the aggregate so far, the value) the next aggregate; or of (key, value, aggregate)."""
        self._check_merge(merge)
        fold = fold_by_arity(function, "aggregate")
        functions = [maker(initial, "aggregate"), function, merge]
        return self._made([self.node], initial, [fold], functions, merge, to or _type(initial), name)


class GroupedTable:
    """A table by another key: rows leave their old group when they join a new one."""

    def __init__(self, pipeline: Pipeline, node: Node, key: Any, value: Any) -> None:
        self.pipeline = pipeline
        self.node = node
        self._key, self._value = key, value

    def count(self, *, name: str | None = None) -> Table:
        return self._made(int, _count, _uncount, [], int, name or "count")

    def reduce(self, add: Function, subtract: Function, *, name: str | None = None) -> Table:
        """`add` of (so far, new value), `subtract` of (so far, old value)."""
        reducer(add, "reduce")
        reducer(subtract, "reduce")

        def fold(key: Any, value: Any, aggregate: Any) -> Any:
            return value if aggregate is _FIRST else add(aggregate, value)

        def unfold(key: Any, value: Any, aggregate: Any) -> Any:
            return subtract(aggregate, value)

        return self._made(_first, fold, unfold, [add, subtract], self._value, name)

    def aggregate(
        self, initial: Callable[[], Any], add: Function, subtract: Function, *, to: Any = None, name: str | None = None
    ) -> Table:
        fold, unfold = fold_by_arity(add, "aggregate"), fold_by_arity(subtract, "aggregate")
        functions = [maker(initial, "aggregate"), add, subtract]
        return self._made(initial, fold, unfold, functions, to or _type(initial), name)

    def _made(
        self, initial: Callable[[], Any], add: Fold, subtract: Fold, functions: list[Any], to: Any, name: str | None
    ) -> Table:
        node = TableAggregate(self.pipeline.graph, self.node, initial, add, subtract, functions, name)
        return Table(self.pipeline, node, self._key, to, knows_old=True)


def _type(initial: Callable[[], Any]) -> Any:
    """What a class makes is of that class."""
    return initial if isinstance(initial, type) else None


def _check_before_windows(*grouped: Grouped) -> None:
    if any(one._windows is not None for one in grouped):
        raise TypeError("cogroup: put the streams together first, then say windowed_by() of all of them")


class _First:
    """Stands for "nothing yet" in a reduction, whose first value is its first aggregate."""

    def __reduce__(self) -> str:
        return "_FIRST"


_FIRST = _First()


def _first() -> Any:
    return _FIRST


def _count(key: Any, value: Any, aggregate: int) -> int:
    return aggregate + 1


def _uncount(key: Any, value: Any, aggregate: int) -> int:
    return aggregate - 1


def _sum(one: int, other: int) -> int:
    return one + other
