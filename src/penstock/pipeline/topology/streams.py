"""Where a definition begins: `Pipeline`, and the streams that flow from it.

Functions are given the value, or the key and the value, as many as they take. Nothing runs here: each call adds a node.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import Any

from penstock.pipeline.topology.aggregates import Latest
from penstock.pipeline.topology.flow import Flow
from penstock.pipeline.topology.functions import by_arity, joiner_by_arity, maker, pair_of, returned, without_none
from penstock.pipeline.topology.grouped import GroupedStream
from penstock.pipeline.topology.joins import Kind, LookUp, StreamJoin
from penstock.pipeline.topology.nodes import Graph, Node, Sink, Source, Transform
from penstock.pipeline.topology.process import Process, Processor
from penstock.pipeline.topology.rows import Row
from penstock.pipeline.topology.serdes import Guess
from penstock.pipeline.topology.tables import GlobalTable, Table
from penstock.pipeline.topology.windows import JoinWindows
from penstock.schemas.serdes import serde_of

Function = Callable[..., Any]

_journal = logging.getLogger("penstock.pipeline")


class Pipeline:
    """A definition. `dead_letters`: the topic for records that cannot be decoded; without it they end the pipeline."""

    def __init__(self, name: str, *, dead_letters: str | None = None) -> None:
        if not name:
            raise ValueError("a pipeline needs a name: its state, its group and its transactions go by it")
        self.name = name
        self.dead_letters = dead_letters
        self.graph = Graph()

    def stream(
        self,
        *topics: str,
        pattern: str | None = None,
        key: Any = str,
        value: Any = bytes,
        timestamp: Function | None = None,
        starting: str | None = None,
        dead_letters: str | None = None,
        name: str | None = None,
    ) -> Stream:
        """The records of topics. `timestamp`: a function that says when it happened, in ms; else, and where there is no
        value, the record's own time.
        `starting`: "earliest" or "latest" where there is no checkpoint yet; "latest" unless told otherwise."""
        source = self._source(topics, pattern, key, value, timestamp, False, False, starting, dead_letters, name)
        return Stream(self, source, key, value)

    def table(
        self,
        topic: str,
        *,
        key: Any = str,
        value: Any = bytes,
        timestamp: Function | None = None,
        dead_letters: str | None = None,
        name: str | None = None,
    ) -> Table:
        """The last value of each key of a topic, from its beginning on. A record without a value deletes its key."""
        source = self._source((topic,), None, key, value, timestamp, True, False, "earliest", dead_letters, name)
        return Table(self, source, key, value)

    def global_table(
        self,
        topic: str,
        *,
        key: Any = str,
        value: Any = bytes,
        dead_letters: str | None = None,
        name: str | None = None,
    ) -> GlobalTable:
        """A table to be asked by any key. Its records count from the moment they are read, whatever their time."""
        source = self._source((topic,), None, key, value, None, True, True, "earliest", dead_letters, name)
        return GlobalTable(self, source, key, value)

    def flow(self) -> Flow:
        flow = Flow(self.name, self.graph, self.dead_letters)
        _check_no_echo(flow)
        return flow

    def _source(
        self,
        topics: tuple[str, ...],
        pattern: str | None,
        key: Any,
        value: Any,
        timestamp: Function | None,
        is_table: bool,
        is_global: bool,
        starting: str | None,
        dead_letters: str | None,
        name: str | None,
    ) -> Source:
        if bool(topics) == bool(pattern):
            raise ValueError("a source needs topics, or a pattern of their names, and not both")
        if starting not in (None, "earliest", "latest"):
            raise ValueError(f'starting="{starting}": it is "earliest" or "latest"')
        self._check_read_once(topics, pattern)
        return Source(
            self.graph,
            list(topics),
            pattern,
            serde_of(without_none(key)),
            serde_of(without_none(value)),
            timestamp=None if timestamp is None else by_arity(timestamp, "timestamp"),
            is_table=is_table,
            is_global=is_global,
            starting=starting,
            dead_letters=dead_letters,
            name=name or " ".join(topics) or pattern,
        )

    def _check_read_once(self, topics: tuple[str, ...], pattern: str | None) -> None:
        """Each source reads for itself: the records of a topic in two of them would come twice."""
        known = [node for node in self.graph.nodes if isinstance(node, Source)]
        read = [topic for source in known for topic in source.topics]
        for place, topic in enumerate(topics):
            if topic in read or topic in topics[:place]:
                raise ValueError(f"the topic {topic} is read twice in {self.name}; use the first stream or table again")
        try:
            patterns = [re.compile(one) for one in [pattern, *(source.pattern for source in known)] if one]
        except re.error as error:
            raise ValueError(f'pattern="{pattern}" is no regular expression: {error}') from None
        for topic in [*read, *topics]:
            for one in patterns:
                if one.fullmatch(topic):
                    raise ValueError(
                        f"the topic {topic} is read twice in {self.name}: by its name, and by the pattern "
                        f"{one.pattern}; take it out of the pattern, or use that stream"
                    )


class Stream:
    """Facts, one after the other."""

    def __init__(self, pipeline: Pipeline, node: Node, key: Any = None, value: Any = None) -> None:
        self.pipeline = pipeline
        self.node = node
        self.key_type, self.value_type = key, value
        """As far as they are known: sinks and DataFrames use them."""

    def filter(self, predicate: Function, *, name: str | None = None) -> Stream:
        test = by_arity(predicate, "filter")
        return self._then("filter", lambda row: (row,) if test(row.key, row.value) else (), predicate, name=name)

    def filter_not(self, predicate: Function, *, name: str | None = None) -> Stream:
        test = by_arity(predicate, "filter_not")
        return self._then("filter-not", lambda row: () if test(row.key, row.value) else (row,), predicate, name=name)

    def map(self, function: Function, *, key: Any = None, to: Any = None, name: str | None = None) -> Stream:
        """To a pair (key, value). `key` and `to`: their types, where a topic or a DataFrame needs them."""
        made = by_arity(function, "map")
        return self._then(
            "map", lambda row: (row.keyed(*pair_of(made(row.key, row.value))),), function, key=key, value=to, name=name
        )

    def map_values(self, function: Function, *, to: Any = None, name: str | None = None) -> Stream:
        made = by_arity(function, "map_values")
        apply = lambda row: (row.to(made(row.key, row.value)),)  # noqa: E731  # one line among its kin
        return self._then("map-values", apply, function, key=self.key_type, value=to or returned(function), name=name)

    def flat_map(self, function: Function, *, key: Any = None, to: Any = None, name: str | None = None) -> Stream:
        """To any number of pairs (key, value)."""
        made = by_arity(function, "flat_map")
        return self._then(
            "flat-map",
            lambda row: [row.keyed(*pair_of(pair)) for pair in made(row.key, row.value)],
            function,
            key=key,
            value=to,
            name=name,
        )

    def flat_map_values(self, function: Function, *, to: Any = None, name: str | None = None) -> Stream:
        made = by_arity(function, "flat_map_values")
        return self._then(
            "flat-map-values",
            lambda row: [row.to(value) for value in made(row.key, row.value)],
            function,
            key=self.key_type,
            value=to,
            name=name,
        )

    def select_key(self, function: Function, *, key: Any = None, name: str | None = None) -> Stream:
        made = by_arity(function, "select_key")
        return self._then(
            "select-key",
            lambda row: (row.keyed(made(row.key, row.value), row.value),),
            function,
            key=key or returned(function),
            value=self.value_type,
            name=name,
        )

    def peek(self, function: Function, *, name: str | None = None) -> Stream:
        """Call a function and go on. It may be called again for a row when a batch is repeated."""
        called = by_arity(function, "peek")

        def apply(row: Row) -> Iterable[Row]:
            called(row.key, row.value)
            return (row,)

        return self._then("peek", apply, function, name=name)

    def foreach(self, function: Function, *, name: str | None = None) -> None:
        self.peek(function, name=name)

    def print(self, label: str = "") -> Stream:
        """Rows to the log of the tasks, for a look."""
        return self.peek(
            lambda key, value: _journal.warning("%s%r: %r", label and label + " ", key, value), name="print"
        )

    def branch(self, *predicates: Function) -> list[Stream]:
        """A stream for each predicate with the rows that it is the first to take, and one more with the rest."""
        tests = [by_arity(one, "branch") for one in predicates]

        def only(slot: int) -> Callable[[Row], Iterable[Row]]:
            return lambda row: (row,) if _first(tests, row) == slot else ()

        return [self._then("branch", only(slot), *predicates) for slot in range(len(tests) + 1)]

    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        parents = [self.node, *(other.node for other in others)]
        node = Transform(self.pipeline.graph, parents, "merge", lambda row: (row,), name=name)
        return Stream(self.pipeline, node, self.key_type, self.value_type)

    def repartition(self, *, name: str | None = None) -> Stream:
        """Nothing to be done: rows are brought together by key wherever a node needs it."""
        return self._then("repartition", lambda row: (row,), name=name)

    def group_by_key(self) -> GroupedStream:
        return GroupedStream(self.pipeline, self.node, self.key_type, self.value_type)

    def group_by(self, function: Function, *, key: Any = None) -> GroupedStream:
        """By another key."""
        return self.select_key(function, key=key).group_by_key()

    def to_table(self, *, name: str | None = None) -> Table:
        node = Latest(self.pipeline.graph, [self.node], name=name)
        return Table(self.pipeline, node, self.key_type, self.value_type, knows_old=True)

    def process(
        self, make: Callable[[], Processor], *, key: Any = None, to: Any = None, name: str | None = None
    ) -> Stream:
        """Rows through code of your own with state and timers by key. `make`: a Processor's class, or a function."""
        node = Process(self.pipeline.graph, self.node, maker(make, "process"), [make], name)
        return Stream(self.pipeline, node, key or self.key_type, to)

    def process_values(self, make: Callable[[], Processor], *, to: Any = None, name: str | None = None) -> Stream:
        return self.process(make, to=to, name=name)

    def join(self, other: Any, joiner: Function, windows: JoinWindows | None = None, **options: Any) -> Stream:
        """With a stream: in a window. With a table: its value of that time. With a global table: `key=` says which."""
        return self._join("inner", other, joiner, windows, **options)

    def left_join(self, other: Any, joiner: Function, windows: JoinWindows | None = None, **options: Any) -> Stream:
        return self._join("left", other, joiner, windows, **options)

    def outer_join(self, other: Stream, joiner: Function, windows: JoinWindows, **options: Any) -> Stream:
        if not isinstance(other, Stream):
            raise TypeError("outer_join: a stream joins outer with a stream; use left_join with a table")
        return self._join("outer", other, joiner, windows, **options)

    def _join(
        self,
        kind: Kind,
        other: Any,
        joiner: Function,
        windows: JoinWindows | None,
        *,
        key: Function | None = None,
        to: Any = None,
        name: str | None = None,
    ) -> Stream:
        made = joiner_by_arity(joiner)
        graph = self.pipeline.graph
        node: Node
        if windows is not None and isinstance(other, Table):
            raise TypeError("a join with a table has no windows: a row finds the value that the table has then")
        if key is not None and not isinstance(other, GlobalTable):
            raise TypeError(
                "key= is for a join with a global table, as global_table() gives it; "
                "rows of a stream or a table meet by their own keys: use select_key() before the join"
            )
        if isinstance(other, Stream):
            if windows is None:
                raise TypeError("a join of two streams needs JoinWindows: how far apart the rows may be")
            node = StreamJoin(graph, self.node, other.node, made, windows, kind, [joiner], name)
        elif isinstance(other, GlobalTable):
            if key is None:
                raise TypeError("a join with a global table needs key=: a function that says which key to look up")
            node = LookUp(graph, self.node, other.node, made, kind, [joiner, key], by_arity(key, "key"), name)
        elif isinstance(other, Table):
            node = LookUp(graph, self.node, other.node, made, kind, [joiner], None, name)
        else:
            raise TypeError(f"a stream cannot be joined with a {type(other).__name__}")
        return Stream(self.pipeline, node, self.key_type, to or returned(joiner))

    def to(self, topic: str | Function, *, key: Any = None, value: Any = None, name: str | None = None) -> None:
        """Write to a topic, or to the one that a function of the row names."""
        if topic == "":
            raise ValueError("to: a topic has a name")
        named: Any = topic if isinstance(topic, str) else by_arity(topic, "to")
        Sink(
            self.pipeline.graph,
            self.node,
            named,
            _sink_serde(key or self.key_type),
            _sink_serde(value or self.value_type),
            changes=False,
            name=name or (topic if isinstance(topic, str) else None),
        )

    def _then(
        self,
        kind: str,
        apply: Callable[[Row], Iterable[Row]],
        *functions: Any,
        key: Any = ...,
        value: Any = ...,
        name: str | None = None,
    ) -> Stream:
        node = Transform(self.pipeline.graph, [self.node], kind, apply, functions, name)
        key = self.key_type if key is ... else key
        value = self.value_type if value is ... else value
        return Stream(self.pipeline, node, key, value)


def _first(tests: list[Callable[[Any, Any], Any]], row: Row) -> int:
    for slot, test in enumerate(tests):
        if test(row.key, row.value):
            return slot
    return len(tests)


def _check_no_echo(flow: Flow) -> None:
    """What is written to a topic that is read by its name comes back on purpose, as what is to be tried again does.
    By a pattern it comes back by mistake; and a record that cannot be decoded would come back for ever."""
    patterns = [source for source in flow.sources if source.pattern]
    for sink in flow.sinks:
        if isinstance(sink.topic, str) and any(source.reads(sink.topic) for source in patterns):
            raise ValueError(
                f"{flow.name} writes to {sink.topic}, and reads it by a pattern: what it writes would come to it "
                "again; leave it out of the pattern, or read it by its name"
            )
    for letters in (source.dead_letters or flow.dead_letters for source in flow.sources):
        if letters is not None and any(source.reads(letters) for source in flow.sources):
            raise ValueError(
                f"{flow.name} reads {letters}, and sends what it cannot decode there: such records would come to it "
                "for ever; name another topic for dead letters"
            )


def _sink_serde(type_: Any) -> Any:
    return Guess() if type_ is None else serde_of(without_none(type_))
