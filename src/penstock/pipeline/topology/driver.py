"""A pipeline on plain rows: no broker, no Spark. For unit tests, as Kafka Streams' TopologyTestDriver is.

driver = Driver(pipeline)
driver.send("orders", "anna", Order(12), timestamp=1000)
assert driver.rows("totals") == [("anna", 12, 1000)]
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from penstock.pipeline.topology.flow import Flow, Output, Shuffled
from penstock.pipeline.topology.nodes import Keyed, Sink, Source
from penstock.pipeline.topology.packing import announce
from penstock.pipeline.topology.rows import Record
from penstock.pipeline.topology.streams import Pipeline


class Result(NamedTuple):
    key: Any
    value: Any
    timestamp: int


class MemoryState:
    """What one node keeps for one key, in dictionaries."""

    def __init__(self) -> None:
        self.blob: bytes | None = None
        self.entries: dict[bytes, bytes] = {}
        self.wake: int | None = None

    def load(self) -> bytes | None:
        return self.blob

    def save(self, blob: bytes | None) -> None:
        self.blob = blob

    def entry(self, name: bytes) -> bytes | None:
        return self.entries.get(name)

    def put(self, name: bytes, blob: bytes | None) -> None:
        if blob is None:
            self.entries.pop(name, None)
        else:
            self.entries[name] = blob

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(self.entries.items()))

    def wake_at(self, at_ms: int | None) -> None:
        self.wake = at_ms


class _Alarmed(MemoryState):
    """Tells the node's alarms when it wants to be woken; an alarm that was set anew is known by its time."""

    def __init__(self, key: bytes, alarms: list[tuple[int, bytes]]) -> None:
        super().__init__()
        self._key, self._alarms = key, alarms

    def wake_at(self, at_ms: int | None) -> None:
        super().wake_at(at_ms)
        if at_ms is not None:
            heapq.heappush(self._alarms, (at_ms, self._key))


class Driver:
    """Each record is worked on to its end before the next, as if all topics had one partition."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._flow: Flow = pipeline.flow()
        announce(self._flow.classes)
        self._feed = self._flow.feed()
        self._sources = {topic: source for source in self._flow.sources for topic in source.topics}
        self._states: dict[tuple[int, bytes], MemoryState] = {}
        self._alarms: dict[int, list[tuple[int, bytes]]] = {}
        self._clocks: dict[int, int] = {}
        self._offsets: dict[str, int] = {}
        self.outputs: list[Output] = []
        """Every record that was written, in order, as bytes."""

    def send(self, topic: str, key: Any, value: Any, *, timestamp: int = 0, headers: Iterable[Any] = ()) -> None:
        """A record as an application would write it: objects are encoded by the source's types, bytes stay."""
        source = self._source(topic)
        encoded_key = key if isinstance(key, bytes) else source.key.encode(key)
        encoded = value if isinstance(value, bytes) else source.value.encode(value)
        offset = self._offsets.get(topic, 0)
        self._offsets[topic] = offset + 1
        record = Record(topic, 0, offset, timestamp, encoded_key, encoded, tuple(headers))
        self._run(self._feed(source, record))

    def advance(self, stream_time: int) -> None:
        """Let stream time pass at every node, as a row of that time would."""
        for node in self._flow.nodes:
            if isinstance(node, Keyed):
                self._clocks[node.id] = max(self._clocks.get(node.id, 0), stream_time)
                self._expire(node.id)

    def rows(self, topic: str) -> list[Result]:
        """What was written to a topic, decoded by the types of its sink."""
        by_row = [one for one in self._flow.sinks if not isinstance(one.topic, str)]
        sink = next((one for one in self._flow.sinks if one.topic == topic), by_row[0] if by_row else None)
        found = [output for output in self.outputs if output.topic == topic]
        return [Result(_decoded(sink, "key", o.key), _decoded(sink, "value", o.value), o.timestamp) for o in found]

    def table(self, topic: str) -> dict[Any, Any]:
        """The last value of each key that was written to a topic; deleted keys are not in it."""
        last: dict[Any, Any] = {}
        for row in self.rows(topic):
            last.pop(row.key, None)
            if row.value is not None:
                last[row.key] = row.value
        return last

    def _source(self, topic: str) -> Source:
        if topic not in self._sources:
            found = next((source for source in self._flow.sources if source.reads(topic)), None)
            if found is None:
                patterns = [source.pattern for source in self._flow.sources if source.pattern]
                known = ", ".join([*sorted(self._sources), *patterns]) or "none"
                raise KeyError(f"{self._flow.name} does not read the topic {topic}; it reads: {known}")
            self._sources[topic] = found
        return self._sources[topic]

    def _run(self, rows: list[Shuffled]) -> None:
        for row in rows:
            if self._flow.level_of(row.node) > self._flow.levels:
                self.outputs.append(self._flow.output(row))
                continue
            now = self._clocks[row.node] = max(self._clocks.get(row.node, 0), row.stream_time)
            self._expire(row.node)
            self._run(self._flow.step(row.node, row.key, [row], self._state(row.node, row.key), now))

    def _state(self, node: int, key: bytes) -> MemoryState:
        state = self._states.get((node, key))
        if state is None:
            state = self._states[node, key] = _Alarmed(key, self._alarms.setdefault(node, []))
        return state

    def _expire(self, node: int) -> None:
        """The timers of all keys that are due, in the order of their times."""
        alarms = self._alarms.get(node, [])
        while alarms and alarms[0][0] <= self._clocks[node]:
            at, key = heapq.heappop(alarms)
            state = self._states[node, key]
            if state.wake == at:
                self._run(self._flow.expire(node, key, state, at))


def _decoded(sink: Sink | None, part: str, data: bytes | None) -> Any:
    return data if sink is None or data is None else getattr(sink, part).decode(data)
