"""Tables: the last value of each key, and how it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.pipeline.topology.aggregates import Store
from penstock.pipeline.topology.foreign_keys import Answers, Subscriptions, subscriptions
from penstock.pipeline.topology.functions import by_arity, joiner_by_arity, pair_of, returned, without_none
from penstock.pipeline.topology.joins import Kind, TableJoin
from penstock.pipeline.topology.nodes import Node, Sink, Transform
from penstock.pipeline.topology.rows import UNKNOWN, Change, Row
from penstock.pipeline.topology.serdes import Guess, WindowedKey
from penstock.pipeline.topology.suppress import Suppress
from penstock.pipeline.topology.windows import (
    FOR_EVER,
    Duration,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    Windows,
    milliseconds,
)
from penstock.schemas.serdes import serde_of

if TYPE_CHECKING:
    from penstock.pipeline.topology.grouped import GroupedTable
    from penstock.pipeline.topology.streams import Pipeline, Stream

Function = Callable[..., Any]


class Table:
    def __init__(
        self,
        pipeline: Pipeline,
        node: Node,
        key: Any = None,
        value: Any = None,
        *,
        knows_old: bool = False,
        windows: Windows | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.node = node
        self.key_type, self.value_type = key, value
        self.windows = windows
        self._remembered: Node | None = node if knows_old else None

    def filter(self, predicate: Function, *, name: str | None = None) -> Table:
        """A row that no longer passes is deleted from the result."""
        return self._filtered("filter", by_arity(predicate, "filter"), predicate, name)

    def filter_not(self, predicate: Function, *, name: str | None = None) -> Table:
        test = by_arity(predicate, "filter_not")
        return self._filtered("filter-not", lambda key, value: not test(key, value), predicate, name)

    def map_values(self, function: Function, *, to: Any = None, name: str | None = None) -> Table:
        made = by_arity(function, "map_values")

        def apply(row: Row) -> Iterable[Row]:
            return (
                row.to(Change(*(one if one is None or one is UNKNOWN else made(row.key, one) for one in row.value))),
            )

        return self._then("map-values", apply, function, to or returned(function), name)

    def to_stream(self, function: Function | None = None, *, name: str | None = None) -> Stream:
        """The changes as facts; a deletion is a row without a value. `function`: to another key."""
        from penstock.pipeline.topology.streams import Stream  # noqa: PLC0415  # streams and tables turn into each other

        stream = Stream(
            self.pipeline,
            Transform(self.pipeline.graph, [self.node], "to-stream", lambda row: (row.to(row.value.new),), name=name),
            _WindowedType(self.key_type, self.windows) if self.windows else self.key_type,
            self.value_type,
        )
        return stream if function is None else stream.select_key(function)

    def to(self, topic: str, *, key: Any = None, value: Any = None, name: str | None = None) -> Table:
        """Write the changes to a compacted topic, to be served (`penstock table serve`) and read again."""
        if not isinstance(topic, str) or not topic:
            raise TypeError(
                "to: a table goes to one topic, by its name; to_stream().to(function) chooses it by the row"
            )
        key_serde = _key_serde(key or self.key_type, self.windows)
        value_type = value or self.value_type
        value_serde: Any = Guess() if value_type is None else serde_of(without_none(value_type))
        graph = self.pipeline.graph
        Sink(graph, self.node, topic, key_serde, value_serde, changes=True, compacted=True, name=name or topic)
        return self

    def group_by(self, function: Function, *, key: Any = None, value: Any = None) -> GroupedTable:
        """To a pair (key, value) in another table's groups."""
        from penstock.pipeline.topology.grouped import GroupedTable  # noqa: PLC0415  # grouping a table gives a table

        made = by_arity(function, "group_by")

        def placed(key: Any, value: Any) -> tuple[Any, Any] | None:
            """None: in no group."""
            given = None if value is None else made(key, value)
            pair = None if given is None else pair_of(given)
            return None if pair is None or pair[0] is None else pair

        def apply(row: Row) -> Iterable[Row]:
            old, new = placed(row.key, row.value.old), placed(row.key, row.value.new)
            if old is not None and new is not None and old[0] == new[0]:
                yield row.keyed(new[0], Change(new[1], old[1]))
                return
            if old is not None:
                yield row.keyed(old[0], Change(None, old[1]))
            if new is not None:
                yield row.keyed(new[0], Change(new[1], None))

        node = Transform(self.pipeline.graph, [self._with_old()], "group-by", apply, [function])
        return GroupedTable(self.pipeline, node, key, value)

    def suppress(
        self, *, until_window_closes: bool = False, for_: Duration | None = None, name: str | None = None
    ) -> Table:
        """Hold changes back: until their window has closed, or for some stream time after the first."""
        if until_window_closes == (for_ is not None):
            raise TypeError('suppress: say until_window_closes=True, or for_="1 minute"')
        release = self._closing() if until_window_closes else _after(milliseconds(for_ or 0, "for_"))
        node = Suppress(self.pipeline.graph, self.node, release, drop_deletes=until_window_closes, name=name)
        return Table(self.pipeline, node, self.key_type, self.value_type, knows_old=True, windows=self.windows)

    def join(self, other: Table, joiner: Function, **options: Any) -> Table:
        """By key; with `foreign_key=`, a function of the left row, by the key that it names."""
        return self._join("inner", other, joiner, **options)

    def left_join(self, other: Table, joiner: Function, **options: Any) -> Table:
        return self._join("left", other, joiner, **options)

    def outer_join(self, other: Table, joiner: Function, **options: Any) -> Table:
        if "foreign_key" in options:
            raise TypeError("outer_join: a join by a foreign key is inner or left")
        return self._join("outer", other, joiner, **options)

    def _join(
        self,
        kind: Kind,
        other: Table,
        joiner: Function,
        *,
        foreign_key: Function | None = None,
        to: Any = None,
        name: str | None = None,
    ) -> Table:
        if isinstance(other, GlobalTable) or not isinstance(other, Table):
            raise TypeError(f"a table cannot be joined with a {type(other).__name__}; it joins with a table")
        graph, made, to = self.pipeline.graph, joiner_by_arity(joiner), to or returned(joiner)
        if foreign_key is None:
            joined = TableJoin(graph, self.node, other.node, made, kind, [joiner], name)
            return Table(self.pipeline, joined, self.key_type, to, knows_old=True, windows=self.windows)
        extract = by_arity(foreign_key, "foreign_key")
        left = self._with_old()
        asked = Transform(graph, [left], "subscribe", lambda row: subscriptions(row, extract), [foreign_key])
        index = Subscriptions(graph, [asked, other.node], [foreign_key])
        answers = Answers(
            graph, left, index, extract, made, keep_left=kind == "left", functions=[joiner, foreign_key], name=name
        )
        # What a left row asks for is answered to the row itself: it has to be there first.
        left.children.remove((answers, 0))
        left.children.insert(left.children.index((asked, 0)), (answers, 0))
        return Table(self.pipeline, answers, self.key_type, to, knows_old=True)

    def _filtered(self, kind: str, test: Callable[[Any, Any], Any], predicate: Function, name: str | None) -> Table:
        def passed(key: Any, value: Any) -> Any:
            return value if value is None or value is UNKNOWN or test(key, value) else None

        def apply(row: Row) -> Iterable[Row]:
            change = Change(passed(row.key, row.value.new), passed(row.key, row.value.old))
            return () if change.new is None and change.old is None else (row.to(change),)

        return self._then(kind, apply, predicate, self.value_type, name)

    def _then(
        self, kind: str, apply: Callable[[Row], Iterable[Row]], function: Function, value: Any, name: str | None
    ) -> Table:
        knows = self._remembered is self.node
        node = Transform(self.pipeline.graph, [self.node], kind, apply, [function], name)
        return Table(self.pipeline, node, self.key_type, value, knows_old=knows, windows=self.windows)

    def _with_old(self) -> Node:
        """The node whose changes tell the old value; one is put in where there is none."""
        if self._remembered is None:
            self._remembered = Store(self.pipeline.graph, [self.node])
        return self._remembered

    def _closing(self) -> Callable[[Row], int]:
        windows = self.windows
        if isinstance(windows, TimeWindows | SlidingWindows):
            late = windows.grace_ms + (1 if isinstance(windows, SlidingWindows) else 0)
            return lambda row: int(row.key.end) + late
        if isinstance(windows, SessionWindows):
            late = windows.gap_ms + windows.grace_ms + 1
            return lambda row: int(row.key.end) + late
        raise TypeError("suppress until_window_closes needs a windowed table, of windows that close")


class GlobalTable(Table):
    """A table that a stream may ask by any key."""


class _WindowedType:
    """The type of a windowed key on its way to a sink."""

    def __init__(self, inner: Any, windows: Windows | None) -> None:
        self._serde = _key_serde(inner, windows)

    def encode(self, value: Any) -> bytes | None:
        return bytes(self._serde.encode(value)) if value is not None else None

    def decode(self, data: bytes) -> Any:
        return self._serde.decode(data)


def _key_serde(type_: Any, windows: Windows | None) -> Any:
    inner: Any = Guess() if type_ is None else serde_of(without_none(type_))
    if windows is None:
        return inner
    if isinstance(windows, SessionWindows):
        return WindowedKey(inner, size_ms=None)
    if isinstance(windows, TimeWindows):
        return WindowedKey(inner, size_ms=windows.size_ms)
    return WindowedKey(inner, size_ms=windows.difference_ms if isinstance(windows, SlidingWindows) else FOR_EVER)


def _after(limit_ms: int) -> Callable[[Row], int]:
    return lambda row: int(row.timestamp) + limit_ms
