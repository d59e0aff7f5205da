"""What clients did and what they were answered, in the order in which it happened.

A process invokes an operation and completes it before it invokes the next; the completion is `ok`, `fail` (it
certainly did not happen) or `info` (nobody knows). After `info` the process is retired: its client goes on under a new
process id, for the operation may take effect at any later time.

An operation is one or more micro-operations: `Send(key, value)`, completed with the offset where it is known, and
`Poll()`, completed with the records by key. A key stands for one topic-partition. Values are unique within a key. A
client that sends many records at once is one `send` operation of many `Send`s.

What a member of a share group is handed is a `take`: a poll without an order, of records that are its own for a while.
That it is done with some of them is an `acknowledge` of `Accept`s.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Key = Hashable
"""One topic-partition: an integer, or text such as "orders-0"."""
Value = Hashable
Process = Hashable
Type = Literal["invoke", "ok", "fail", "info"]
Function = Literal["send", "poll", "txn", "take", "acknowledge", "assign", "subscribe", "crash", "debug"]

DATA: tuple[Function, ...] = ("send", "poll", "txn")
"""The functions whose micro-operations touch a log, in its order."""
MOVES: tuple[Function, ...] = ("assign", "subscribe")
"""Those that change which keys a process polls."""


class Send(NamedTuple):
    key: Key
    value: Value
    offset: int | None = None
    """None: not told, as with acks=0 or before the completion"""


class Poll(NamedTuple):
    records: Mapping[Any, Sequence[tuple[int, Any]]] = {}
    """(offset, value) by key, in the order in which the client was handed them"""


class Accept(NamedTuple):
    key: Key
    offset: int


MicroOperation = Send | Poll | Accept


class Operation(NamedTuple):
    number: int
    """its place in the history"""
    process: Process
    time_ns: int
    type: Type
    function: Function
    micros: tuple[MicroOperation, ...] = ()
    keys: tuple[Key, ...] = ()
    """of assign and subscribe: what is polled from now on"""
    rebalanced: tuple[Key, ...] = ()
    """of a poll: keys that a rebalance took or gave while it ran"""

    def sends(self) -> list[Send]:
        return [micro for micro in self.micros if isinstance(micro, Send)]

    def accepts(self) -> list[Accept]:
        return [micro for micro in self.micros if isinstance(micro, Accept)]

    def reads(self) -> list[tuple[Key, Sequence[tuple[int, Value]]]]:
        """What its polls were handed, key by key."""
        return [part for micro in self.micros if isinstance(micro, Poll) for part in micro.records.items() if part[1]]


class History:
    """Records operations. Invariant: at most one operation of a process is open."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._open: dict[Process, Operation] = {}
        self._retired: set[Process] = set()

    def invoke(
        self,
        process: Process,
        function: Function,
        time_ns: int,
        micros: Iterable[MicroOperation] = (),
        keys: Iterable[Key] = (),
    ) -> Operation:
        assert process not in self._open, f"process {process!r} has an operation open"
        assert process not in self._retired, f"process {process!r} is retired: its client goes on as a new one"
        return self._add(Operation(0, process, time_ns, "invoke", function, tuple(micros), tuple(keys)))

    def complete(
        self,
        process: Process,
        type: Type,
        time_ns: int,
        micros: Iterable[MicroOperation] | None = None,
        rebalanced: Iterable[Key] = (),
    ) -> Operation:
        """`micros`: with offsets and records as far as they are known; None leaves them as they were invoked."""
        assert type != "invoke"
        begun = self._open[process]
        known = begun.micros if micros is None else tuple(micros)
        return self._add(Operation(0, process, time_ns, type, begun.function, known, begun.keys, tuple(rebalanced)))

    def abandon(self, time_ns: int) -> None:
        """The end of a run: what is still open has an unknown outcome."""
        for process in list(self._open):
            self.complete(process, "info", time_ns)

    def _add(self, operation: Operation) -> Operation:
        operation = operation._replace(number=len(self.operations))
        self.operations.append(operation)
        if operation.type == "invoke":
            self._open[operation.process] = operation
        else:
            del self._open[operation.process]
        if operation.type == "info":
            self._retired.add(operation.process)
        return operation

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __len__(self) -> int:
        return len(self.operations)


def to_lines(history: Iterable[Operation]) -> Iterator[str]:
    """One JSON text an operation, for a history that is kept. Keys and values must be numbers or text."""
    for one in history:
        micros = [_micro_parts(micro) for micro in one.micros]
        yield json.dumps([one.process, one.time_ns, one.type, one.function, micros, one.keys, one.rebalanced])


def from_lines(lines: Iterable[str]) -> History:
    history = History()
    for line in lines:
        process, time_ns, type, function, micros, keys, rebalanced = json.loads(line)
        parts = tuple(_micro(part) for part in micros)
        history._add(Operation(0, process, time_ns, type, function, parts, tuple(keys), tuple(rebalanced)))
    return history


def _micro_parts(micro: MicroOperation) -> list[object]:
    if isinstance(micro, Send):
        return ["send", *micro]
    if isinstance(micro, Accept):
        return ["accept", *micro]
    return ["poll", [[key, records] for key, records in micro.records.items()]]


def _micro(parts: list[Any]) -> MicroOperation:
    name, *rest = parts
    if name == "send":
        return Send(*rest)
    if name == "accept":
        return Accept(*rest)
    return Poll({key: [(offset, value) for offset, value in found] for key, found in rest[0]})
