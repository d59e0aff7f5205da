"""The kinds of nodes that a topology is made of, and the step in which a keyed one works."""

from __future__ import annotations

import re
import sys
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from penstock.pipeline.topology.packing import pack, unpack
from penstock.pipeline.topology.rows import Headers, Row, timer_order
from penstock.schemas.serdes import Serde

_OURS = __name__.rpartition(".")[0]


class KeyState(Protocol):
    """What a shell keeps for one node and one key."""

    def load(self) -> bytes | None: ...
    def save(self, blob: bytes | None) -> None: ...
    def entry(self, name: bytes) -> bytes | None: ...
    def put(self, name: bytes, blob: bytes | None) -> None: ...
    def scan(self) -> Iterator[tuple[bytes, bytes]]: ...
    def wake_at(self, at_ms: int | None) -> None: ...


class Graph:
    """The nodes of a pipeline in the order of their making: parents come before children."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, node: Node) -> None:
        node.id = len(self.nodes)
        self.nodes.append(node)

    def check_own(self, node: Node) -> None:
        if node.id >= len(self.nodes) or self.nodes[node.id] is not node:
            raise ValueError(
                f"{node} belongs to another pipeline; streams and tables meet within one, or by a topic between two"
            )


class Node:
    kind = "node"

    def __init__(self, graph: Graph, parents: Iterable[Node | tuple[Node, int]] = (), name: str | None = None) -> None:
        self.id = -1
        graph.add(self)
        self.name = name or f"{self.kind}-{self.id}"
        self.where = _defined_at()
        self.parents: list[tuple[Node, int]] = []
        self.children: list[tuple[Node, int]] = []
        for slot, parent in enumerate(parents):
            graph.check_own(parent[0] if isinstance(parent, tuple) else parent)
            self.attach(*(parent if isinstance(parent, tuple) else (parent, slot)))

    def attach(self, parent: Node, port: int) -> None:
        self.parents.append((parent, port))
        parent.children.append((self, port))

    def __repr__(self) -> str:
        return f"{self.name} ({self.where})"


class Source(Node):
    """Records of topics, decoded. What cannot be decoded goes to the dead letters, or ends the pipeline."""

    kind = "source"

    def __init__(
        self,
        graph: Graph,
        topics: list[str],
        pattern: str | None,
        key: Serde[Any],
        value: Serde[Any],
        *,
        timestamp: Callable[[Any, Any], int] | None,
        is_table: bool = False,
        is_global: bool = False,
        starting: str | None = None,
        dead_letters: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(graph, (), name)
        self.topics = topics
        self.pattern = pattern
        self.key, self.value = key, value
        self.timestamp = timestamp
        self.is_table, self.is_global = is_table, is_global
        self.starting = starting
        self.dead_letters = dead_letters

    def reads(self, topic: str) -> bool:
        return topic in self.topics or (self.pattern is not None and re.fullmatch(self.pattern, topic) is not None)


class Transform(Node):
    """Row in, rows out, no memory."""

    def __init__(
        self,
        graph: Graph,
        parents: Iterable[Node | tuple[Node, int]],
        kind: str,
        apply: Callable[[Row], Iterable[Row]],
        functions: Iterable[Any] = (),
        name: str | None = None,
    ) -> None:
        self.kind = kind
        super().__init__(graph, parents, name)
        self.apply = apply
        self.functions = list(functions)
        """The user's, as they were given: their classes go along to the tasks."""


class Sink(Node):
    """Rows to a topic; its name may depend on the row."""

    kind = "sink"

    def __init__(
        self,
        graph: Graph,
        parent: Node,
        topic: str | Callable[[Any, Any], str],
        key: Serde[Any],
        value: Serde[Any],
        *,
        changes: bool,
        compacted: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(graph, [parent], name)
        self.topic = topic
        self.key, self.value = key, value
        self.changes = changes
        """The rows are a table's changes: the new value is written, a tombstone where there is none."""
        self.compacted = compacted


class Keyed(Node):
    """A node with state. The rows of a key meet here, in order, with what the node kept for that key."""

    kind = "keyed"
    is_table = False
    """It emits changes of a table; the shell may let several changes of a key in one step go out as one."""

    def __init__(
        self,
        graph: Graph,
        parents: Iterable[Node | tuple[Node, int]],
        functions: Iterable[Any] = (),
        name: str | None = None,
    ) -> None:
        super().__init__(graph, parents, name)
        self.functions = list(functions)

    def takes(self, row: Row, port: int) -> bool:
        """Whether the row is for this node. One that is not neither reaches it nor moves its time."""
        return True

    def key_of(self, row: Row, port: int) -> Any:
        """What the row's state is kept under."""
        return row.key

    def on_row(self, step: Step, row: Row, port: int) -> Iterable[Row]:
        raise NotImplementedError

    def on_timer(self, step: Step, at: int) -> Iterable[Row]:
        return ()


class Step:
    """One key of one node while some of its rows are worked on."""

    def __init__(self, packed_key: bytes, kept: KeyState) -> None:
        self._packed_key = packed_key
        self._kept = kept
        blob = kept.load()
        self.key: Any = None
        self.state: Any = None
        """The node's own, None at first and where nothing is to be kept."""
        self.now = 0
        """Stream time in ms: the largest timestamp that has reached the node, as far as this key can know."""
        self._timers: list[int] = []
        self._woken: int | None = None
        if blob is not None:
            self.key, self.state, self._timers, self.now = unpack(blob)
            self._woken = self._timers[0] if self._timers else None

    def set_timer(self, at: int) -> None:
        """Call `on_timer` once stream time has reached `at`. A second one for the same time is the same."""
        if at not in self._timers:
            insort(self._timers, at)

    def clear_timer(self, at: int) -> None:
        if at in self._timers:
            self._timers.remove(at)

    def due(self, now: int) -> Iterator[int]:
        """The timers up to `now`, each removed as it is given; `self.now` is then its time."""
        while self._timers and self._timers[0] <= now:
            at = self._timers.pop(0)
            self.now = max(self.now, at)
            yield at

    def emit(self, key: Any, value: Any, timestamp: int, headers: Headers = ()) -> Row:
        """A row that a timer gives rise to."""
        return Row(key, value, timestamp, headers, self.now, timer_order(self.now, self._packed_key))

    def entry(self, name: bytes) -> Any:
        blob = self._kept.entry(name)
        return None if blob is None else unpack(blob)

    def put(self, name: bytes, value: Any) -> None:
        self._kept.put(name, None if value is None else pack(value))

    def scan(self) -> list[tuple[bytes, Any]]:
        return sorted((name, unpack(blob)) for name, blob in self._kept.scan())

    def save(self) -> None:
        if self.state is None and not self._timers:
            self._kept.save(None)
        else:
            self._kept.save(pack((self.key, self.state, self._timers, self.now)))
        first = self._timers[0] if self._timers else None
        if first != self._woken:
            self._kept.wake_at(first)


def _defined_at() -> str:
    """file:line of the user's code that is making a node."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
