"""Code of the user's own with state and timers, one key at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.pipeline.topology.nodes import Graph, Keyed, Node, Step
from penstock.pipeline.topology.packing import pack_key
from penstock.pipeline.topology.rows import Headers, Row


class Context:
    """What a processor may do for the key at hand."""

    def __init__(self, step: Step, row: Row | None) -> None:
        self._step = step
        self._row = row
        self.forwarded: list[Row] = []

    @property
    def key(self) -> Any:
        return self._step.key

    @property
    def timestamp(self) -> int:
        """Of the row at hand, or the timer's time; milliseconds."""
        return self._step.now if self._row is None else self._row.timestamp

    @property
    def stream_time(self) -> int:
        return self._step.now

    @property
    def headers(self) -> Headers:
        return () if self._row is None else self._row.headers

    @property
    def state(self) -> Any:
        """What was kept for this key, None at first; set it to keep something, set it to None to forget."""
        return self._step.state

    @state.setter
    def state(self, value: Any) -> None:
        self._step.state = value

    def get(self, name: Any) -> Any:
        """An entry of the map beside the state: for what is too large to be loaded whole."""
        found = self._step.entry(pack_key(name))
        return None if found is None else found[1]

    def put(self, name: Any, value: Any) -> None:
        """None removes it."""
        self._step.put(pack_key(name), None if value is None else (name, value))

    def items(self) -> list[tuple[Any, Any]]:
        return [kept for _, kept in self._step.scan()]

    def forward(
        self, value: Any, *, key: Any = ..., timestamp: int | None = None, headers: Headers | None = None
    ) -> None:
        key = self._step.key if key is ... else key
        timestamp = self.timestamp if timestamp is None else timestamp
        headers = self.headers if headers is None else headers
        if self._row is None:
            self.forwarded.append(self._step.emit(key, value, timestamp, headers))
        else:
            row = self._row
            self.forwarded.append(Row(key, value, timestamp, headers, row.stream_time, row.order))

    def set_timer(self, at: int) -> None:
        """Call `on_timer` once stream time has reached `at`."""
        self._step.set_timer(at)

    def clear_timer(self, at: int) -> None:
        self._step.clear_timer(at)


class Processor:
    """To be derived from. One object serves many keys: what is to be remembered belongs into the context."""

    def process(self, key: Any, value: Any, context: Context) -> None:
        raise NotImplementedError

    def on_timer(self, at: int, context: Context) -> None:
        """Stream time has reached a timer that was set for this key."""


class Process(Keyed):
    kind = "process"

    def __init__(
        self, graph: Graph, parent: Node, make: Callable[[], Processor], functions: list[Any], name: str | None = None
    ) -> None:
        super().__init__(graph, [parent], functions, name)
        self.make = make
        self._processor: Processor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_processor": None}

    def _made(self) -> Processor:
        if self._processor is None:
            self._processor = self.make()
        return self._processor

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        context = Context(step, row)
        self._made().process(row.key, row.value, context)
        return context.forwarded

    def on_timer(self, step: Step, at: int) -> Iterable[Row]:
        context = Context(step, None)
        self._made().on_timer(at, context)
        return context.forwarded
