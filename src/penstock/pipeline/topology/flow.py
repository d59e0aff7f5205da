"""A pipeline's definition, compiled: what to do with a record, with the rows of a key, with a timer.

The rows that leave a door are `Shuffled`: each is meant for one key of one keyed node, or for a sink. A shell brings
them there, through as many levels as there are keyed nodes in a chain; rows for later levels pass the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.pipeline.topology.nodes import Graph, Keyed, KeyState, Node, Sink, Source, Step, Transform
from penstock.pipeline.topology.packing import announce, classes_of, pack, pack_key, unpack
from penstock.pipeline.topology.rows import Change, Headers, Record, Row, emission_order, origin_order
from penstock.schemas.errors import Undecodable
from penstock.schemas.serdes import JsonSerde

ERROR_HEADERS = "__connect.errors."
"""What Kafka Connect calls the headers of dead letters: tools know them."""


class Shuffled(NamedTuple):
    node: int
    key: bytes
    payload: bytes
    timestamp: int
    stream_time: int
    order: bytes


class Output(NamedTuple):
    """A record for a topic."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


class PipelineError(Exception):
    """A function of the definition failed. Its cause is the function's own error."""

    def __init__(self, node: str, where: str, what: str, error: str) -> None:
        super().__init__(f"{node}, defined at {where}, failed on {what}: {error}")
        self.node, self.where, self.what, self.error = node, where, what, error

    def __reduce__(self) -> Any:
        return PipelineError, (self.node, self.where, self.what, self.error)


class Flow:
    """What goes to the tasks. Nothing in it changes: state is the shell's, clocks are a `Feed`'s."""

    def __init__(self, name: str, graph: Graph, dead_letters: str | None = None) -> None:
        self.name = name
        self.nodes = graph.nodes
        self.dead_letters = dead_letters
        self.sources = [node for node in graph.nodes if isinstance(node, Source)]
        self.sinks = [node for node in graph.nodes if isinstance(node, Sink)]
        self._levels = _levels(graph.nodes)
        self.levels = max(self._levels.values(), default=0)
        """How many keyed nodes the longest chain has."""
        self.dead_letter_sink = len(graph.nodes)
        self.classes = classes_of(_functions(graph.nodes))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        announce(self.classes)

    def level_of(self, node: int) -> int:
        """Of a keyed node, from 1 on; of a sink, one more than the last."""
        return self._levels.get(node, self.levels + 1)

    @property
    def signature(self) -> list[tuple[Any, ...]]:
        """(node, kind, parents, windows): state belongs to nodes by their place, and its times were reckoned with their
        windows, so a checkpoint goes with one signature."""
        return [_signature(node) for node in self.nodes if not isinstance(node, Sink)]

    def feed(self) -> Feed:
        return Feed(self)

    def output(self, row: Shuffled) -> Output:
        return Output(*unpack(row.payload))

    def step(self, node: int, key: bytes, rows: Iterable[Shuffled], state: KeyState, floor: int = 0) -> list[Shuffled]:
        """Work on rows of one key of a keyed node. `floor`: stream time is known to be that at least."""
        keyed = self.nodes[node]
        assert isinstance(keyed, Keyed)
        step = Step(key, state)
        emitted: list[Row] = []
        for shuffled in sorted(rows, key=_order):
            port, row_key, value, headers = unpack(shuffled.payload)
            now = max(step.now, floor, shuffled.stream_time)
            row = Row(row_key, value, shuffled.timestamp, headers, now, shuffled.order)
            if step.key is None:
                step.key = keyed.key_of(row, port)
            self._fire(keyed, step, now, emitted)
            step.now = now
            try:
                emitted += keyed.on_row(step, row, port)
            except PipelineError:
                raise
            except Exception as error:
                raise _failed(keyed, row, error) from error
        step.save()
        return self._spread(keyed, emitted)

    def expire(self, node: int, key: bytes, state: KeyState, now: int) -> list[Shuffled]:
        """Stream time has reached `now`: fire what is due."""
        keyed = self.nodes[node]
        assert isinstance(keyed, Keyed)
        step = Step(key, state)
        emitted: list[Row] = []
        self._fire(keyed, step, now, emitted)
        step.save()
        return self._spread(keyed, emitted)

    def _fire(self, keyed: Keyed, step: Step, now: int, emitted: list[Row]) -> None:
        for at in step.due(now):
            try:
                emitted += keyed.on_timer(step, at)
            except Exception as error:
                raise PipelineError(
                    keyed.name, keyed.where, f"the timer of key {step.key!r} at {at}", _told(error)
                ) from error

    def _spread(self, keyed: Keyed, emitted: list[Row]) -> list[Shuffled]:
        if keyed.is_table and len(emitted) > 1:
            emitted = _merged(emitted)
        spread = Spread(self)
        for row in emitted:
            spread.pass_on(keyed, row)
        return spread.rows


class Spread:
    """Rows on their way down from a node through those without state, up to keyed nodes and sinks."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.rows: list[Shuffled] = []

    def pass_on(self, node: Node, row: Row) -> None:
        for child, port in node.children:
            if isinstance(child, Transform):
                try:
                    for out in child.apply(row):
                        self.pass_on(child, out)
                except PipelineError:
                    raise
                except Exception as error:
                    raise _failed(child, row, error) from error
            elif isinstance(child, Keyed):
                self._shuffle(child, row, port)
            else:
                assert isinstance(child, Sink)
                self._sink(child, row)

    def _shuffle(self, node: Keyed, row: Row, port: int) -> None:
        try:
            if not node.takes(row, port):
                return
            key = pack_key(node.key_of(row, port))
            payload = pack((port, row.key, row.value, row.headers))
        except Exception as error:
            raise _failed(node, row, error) from error
        self.add(node.id, key, payload, row)

    def _sink(self, sink: Sink, row: Row) -> None:
        value = row.value.new if sink.changes else row.value
        try:
            topic = sink.topic if isinstance(sink.topic, str) else _topic(sink.topic(row.key, value))
            key = sink.key.encode(row.key)
            encoded = sink.value.encode(value)
        except Exception as error:
            raise _failed(sink, row, error) from error
        output = (topic, key, encoded, row.headers, row.timestamp)
        self.add(sink.id, key or b"", pack(output), row)

    def add(self, node: int, key: bytes, payload: bytes, row: Row) -> None:
        order = emission_order(row.order, len(self.rows))
        self.rows.append(Shuffled(node, key, payload, row.timestamp, row.stream_time, order))


class Feed(Spread):
    """Records in, in the order of their offsets; keeps the time that each partition has reached at each node."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._clocks: dict[tuple[int, str, int], int] = {}
        self._record = Record("", 0, 0, 0, None, None)
        self._source = flow.sources[0] if flow.sources else None

    def __call__(self, source: Source, record: Record) -> list[Shuffled]:
        self.rows = []
        self._record, self._source = record, source
        part = "key"
        try:
            key = None if record.key is None else source.key.decode(record.key)
            part = "value"
            value = None if record.value is None else source.value.decode(record.value)
            part = "timestamp"
            timestamp = _timestamp(source, key, value, record)
        except Undecodable as error:
            self._bury(record, part, error)
            return self.rows
        except Exception as error:
            raise PipelineError(source.name, source.where, _place(record), _told(error)) from error
        payload = Change(value) if source.is_table else value
        if source.is_table and key is None:
            return self.rows  # nothing to keep it under: as Kafka Streams, it is left out
        self.values(source, Row(key, payload, timestamp, record.headers))
        return self.rows

    def values(self, source: Source, row: Row) -> None:
        try:
            self.pass_on(source, row)
        except PipelineError as error:
            if not error.what.startswith("offset "):
                raise PipelineError(error.node, error.where, _place(self._record), error.error) from error.__cause__
            raise

    def add(self, node: int, key: bytes, payload: bytes, row: Row) -> None:
        record, source = self._record, self._source
        assert source is not None
        place = (node, record.topic, record.partition)
        reached = 0 if source.is_global else max(self._clocks.get(place, 0), row.timestamp)
        self._clocks[place] = reached
        order = origin_order(reached, record.topic, record.partition, record.offset, table=source.is_table)
        order = emission_order(order, len(self.rows))
        self.rows.append(Shuffled(node, key, payload, row.timestamp, reached, order))

    def _bury(self, record: Record, part: str, error: Undecodable) -> None:
        assert self._source is not None
        topic = self._source.dead_letters or self.flow.dead_letters
        if topic is None:
            told = f"its {part} cannot be decoded: {error}; dead_letters= names a topic for such records"
            raise PipelineError(self._source.name, self._source.where, _place(record), told)
        reason = {
            "topic": record.topic,
            "partition": str(record.partition),
            "offset": str(record.offset),
            "stage": "KEY_CONVERTER" if part == "key" else "VALUE_CONVERTER",
            "exception.message": str(error),
        }
        headers = record.headers + tuple((ERROR_HEADERS + name, text.encode()) for name, text in reason.items())
        output = (topic, record.key, record.value, headers, max(record.timestamp, 0))
        row = Row(record.key, record.value, max(record.timestamp, 0))
        self.add(self.flow.dead_letter_sink, record.key or b"", pack(output), row)


def _timestamp(source: Source, key: Any, value: Any, record: Record) -> int:
    """Of a record without a value its own: there is nothing to take it from."""
    taken: Any = record.timestamp
    if source.timestamp is not None and value is not None:
        taken = source.timestamp(key, value)
        if not isinstance(taken, int | float):
            raise TypeError(f"the timestamp function gave {taken!r}; it gives milliseconds since 1970, a number")
    if not taken >= 0:
        raise Undecodable(f"it is {taken}")
    return int(taken)


def _signature(node: Node) -> tuple[Any, ...]:
    made = (node.id, node.kind, [(parent.id, port) for parent, port in node.parents])
    windows = getattr(node, "windows", None)
    return made if windows is None else (*made, repr(windows))


def _levels(nodes: list[Node]) -> dict[int, int]:
    """Keyed node to level; the nodes come parents first."""
    reached: dict[int, int] = {}
    levels: dict[int, int] = {}
    for node in nodes:
        above = max((reached[parent.id] for parent, _ in node.parents), default=0)
        if isinstance(node, Keyed):
            levels[node.id] = above = above + 1
        reached[node.id] = above
    return levels


def _functions(nodes: list[Node]) -> list[Any]:
    found: list[Any] = []
    for node in nodes:
        found += getattr(node, "functions", [])
        for serde in (getattr(node, "key", None), getattr(node, "value", None)):
            if isinstance(serde, JsonSerde):
                found.append(serde.kind)
    return found


def _merged(emitted: list[Row]) -> list[Row]:
    """Several changes of a key as one, from the first old value to the last new one, where the last stood."""
    first: dict[bytes, Row] = {}
    last: dict[bytes, Row] = {}
    for row in emitted:
        key = pack_key(row.key)
        first.setdefault(key, row)
        last.pop(key, None)
        last[key] = row
    return [row.to(Change(row.value.new, first[key].value.old)) for key, row in last.items()]


def _topic(named: Any) -> str:
    if not isinstance(named, str) or not named:
        raise TypeError(f"the function gave {named!r}; it gives the name of a topic")
    return named


def _order(row: Shuffled) -> bytes:
    return row.order


def _place(record: Record) -> str:
    return f"offset {record.offset} of {record.topic}-{record.partition}"


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _failed(node: Node, row: Row, error: Exception) -> PipelineError:
    return PipelineError(node.name, node.where, f"the row with key {row.key!r}", _told(error))
