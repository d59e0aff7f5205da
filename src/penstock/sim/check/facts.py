"""What follows from a history before anything is judged: who wrote what, who read it, and each key's log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from penstock.sim.check.history import Key, Operation, Process, Send, Value


class MalformedHistory(ValueError):
    """The history breaks the rules of recording, so that nothing can be said about the log."""


class KeyLog:
    """One key's log as far as clients saw it.

    Offsets are renumbered densely, for gaps are legal: markers of transactions, records that were compacted away. An
    offset that was told with several values, and a value that was told at several offsets, are kept, not resolved.
    """

    __slots__ = ("_at", "conflicts", "duplicates", "first", "last", "offsets", "values")

    def __init__(self) -> None:
        self._at: dict[int, tuple[Value, Operation]] = {}
        self.conflicts: dict[int, dict[Value, Operation]] = {}
        """offset: every value it was told with, and an operation that told it"""
        self.duplicates: dict[Value, list[int]] = {}
        """value: its offsets, where there are several"""
        self.offsets: list[int] = []
        self.values: list[Value] = []
        """by dense index, one value each"""
        self.first: dict[Value, int] = {}
        self.last: dict[Value, int] = {}
        """value: the first and the last dense index it was told at"""

    def note(self, offset: int, value: Value, operation: Operation) -> None:
        known = self._at.get(offset)
        if known is None:
            self._at[offset] = (value, operation)
        elif known[0] != value:
            self.conflicts.setdefault(offset, {known[0]: known[1]}).setdefault(value, operation)

    def seal(self) -> None:
        """After the last `note`: number the offsets."""
        self.offsets = sorted(self._at)
        self.values = [self._at[offset][0] for offset in self.offsets]
        for index, offset in enumerate(self.offsets):
            for value in self.conflicts.get(offset) or (self.values[index],):
                if self.first.setdefault(value, index) != index:
                    self.duplicates.setdefault(value, [self.offsets[self.first[value]]]).append(offset)
                self.last[value] = index

    def told_by(self, offset: int, value: Value) -> Operation:
        told = self.conflicts.get(offset)
        return told[value] if told is not None else self._at[offset][1]


class Step(NamedTuple):
    """A completed operation, taken apart once."""

    operation: Operation
    sends: list[Send]
    reads: list[tuple[Key, Sequence[tuple[int, Value]]]]


class Facts:
    """A history streamed once, and its sends once more: which of them count depends on what was read."""

    def __init__(self, history: Iterable[Operation]) -> None:
        self.steps: list[Step] = []
        """Completed operations of every function, in the order of completion; what is open at the end is `info`."""
        self.invoked: dict[int, Operation] = {}
        """number of a completion: its invocation"""
        self.writer: dict[Key, dict[Value, Operation]] = defaultdict(dict)
        self.read: dict[Key, dict[Value, Operation]] = defaultdict(dict)
        """the first `ok` operation that polled the value"""
        self.taken: dict[Key, dict[Value, Operation]] = defaultdict(dict)
        """the first `ok` operation in which a member of a share group was handed it"""
        self.logs: dict[Key, KeyLog] = defaultdict(KeyLog)
        self._committed: dict[int, bool] = {}
        self._gather(history)
        for step in self.steps:
            self._note(*step)
        self._note_sends()
        for log in self.logs.values():
            log.seal()

    def must_have_committed(self, operation: Operation) -> bool:
        """It was acked, or somebody read a part of it."""
        if operation.type != "info":
            return operation.type == "ok"
        known = self._committed.get(operation.number)
        if known is None:
            known = any(
                send.value in self.read[send.key] or send.value in self.taken[send.key] for send in operation.sends()
            )
            self._committed[operation.number] = known
        return known

    def position(self, key: Key, value: Value) -> int | None:
        """The value's dense index in the key's log; None where nobody knows."""
        log = self.logs.get(key)
        return log.last.get(value) if log is not None else None

    def _gather(self, history: Iterable[Operation]) -> None:
        invocations: dict[Process, Operation] = {}
        for operation in history:
            if operation.type == "invoke":
                if operation.process in invocations:
                    raise MalformedHistory(f"operation {operation.number}: its process has another one open")
                invocations[operation.process] = operation
                continue
            if operation.process not in invocations:
                raise MalformedHistory(f"operation {operation.number} completes what was not invoked")
            self.invoked[operation.number] = invocations.pop(operation.process)
            self._add(operation)
        for left in invocations.values():
            self.invoked[left.number] = left
            self._add(left._replace(type="info"))

    def _add(self, operation: Operation) -> None:
        self.steps.append(Step(operation, operation.sends(), operation.reads()))

    def _note(
        self, operation: Operation, sends: list[Send], reads: list[tuple[Key, Sequence[tuple[int, Value]]]]
    ) -> None:
        for send in sends:
            if self.writer[send.key].setdefault(send.value, operation) is not operation:
                other = self.writer[send.key][send.value].number
                raise MalformedHistory(f"{send.value!r} is sent to {send.key!r} twice: {other}, {operation.number}")
        for key, records in reads:
            log = self.logs[key]
            for offset, value in records:
                log.note(offset, value, operation)
            if operation.type == "ok":
                read = (self.taken if operation.function == "take" else self.read)[key]
                for _, value in records:
                    read.setdefault(value, operation)

    def _note_sends(self) -> None:
        for operation, sends, _ in self.steps:
            if not sends or not self.must_have_committed(operation):
                continue
            for send in sends:
                if send.offset is not None:
                    self.logs[send.key].note(send.offset, send.value, operation)
