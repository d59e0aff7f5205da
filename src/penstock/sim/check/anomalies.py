"""An anomaly by its name, with the operations that show it; and which of them Kafka's contract allows."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sim.check.history import Key, Operation, Process

ALWAYS_ALLOWED = frozenset({"int-send-skip", "G0", "G0-process", "G0-realtime"})
"""Writes of several producers interleave: a log is not a serial history of operations."""
ALLOWED_OF_SHARE_GROUPS = frozenset({"accepted-again"})
"""A broker that has not heard yet that it leads no more hands out what its successor knows to be done."""
ALLOWED_WHEN_SUBSCRIBED = frozenset({"poll-skip", "nonmonotonic-poll"})
"""A rebalance gives a process what another one read meanwhile."""
ALLOWED_WITH_WRITE_ORDER = frozenset({"G1c", "G1c-process", "G1c-realtime"})
"""With the order of writes inferred from the log, two operations that interleave already look like a cycle."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    name: str
    text: str
    operations: tuple[Operation, ...]
    """the fewest that show it, in the order in which they completed"""
    key: Key | None = None
    process: Process | None = None
    """whose view it is, where it is one process's"""

    def __str__(self) -> str:
        numbers = ", ".join(str(operation.number) for operation in self.operations)
        where = f" in {self.key!r}" if self.key is not None else ""
        return f"{self.name}{where}: {self.text} (operations {numbers})"
