"""Anomalies of order: records skipped, met again or sent out of order, between operations and within one.

Where a record stands is told by its dense index in the key's log: the next one is one further.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from penstock.sim.check.anomalies import Anomaly
from penstock.sim.check.facts import Facts, Step
from penstock.sim.check.history import MOVES, Key, Operation, Process

Place = tuple[int, Operation]
"""A dense index in a key's log, and the operation that was there."""


def polls(facts: Facts) -> Iterator[Anomaly]:
    """poll-skip, nonmonotonic-poll: where the next poll of a process goes on, seen from its last `ok` one.

    int-poll-skip, int-nonmonotonic-poll: the same for consecutive records of one operation.
    """
    places: dict[Process, dict[Key, Place]] = defaultdict(dict)
    for step in facts.steps:
        operation = step.operation
        if operation.function == "take":
            continue
        mine = places[operation.process]
        _forget(operation, mine)
        for key, indices in _polled(facts, step).items():
            if key in mine and indices[0] - mine[key][0] != 1:
                yield _anomaly("", "poll", facts, key, mine[key], (indices[0], operation))
            if key not in operation.rebalanced:
                for before, after in _uneven(indices):
                    yield _anomaly("int-", "poll", facts, key, (before, operation), (after, operation))
            if operation.type == "ok":
                mine[key] = (indices[-1], operation)


def sends(facts: Facts) -> Iterator[Anomaly]:
    """nonmonotonic-send: a process sent something, then something else that stands before it.

    int-nonmonotonic-send, int-send-skip: the same for consecutive records of one operation.
    """
    places: dict[Process, dict[Key, Place]] = defaultdict(dict)
    for step in facts.steps:
        operation = step.operation
        mine = places[operation.process]
        _forget(operation, mine)
        for key, indices in _sent(facts, step).items():
            for before, after in _uneven(indices):
                yield _anomaly("int-", "send", facts, key, (before, operation), (after, operation))
            if operation.type == "fail":
                continue
            if key in mine and indices[0] <= mine[key][0]:
                yield _anomaly("", "send", facts, key, mine[key], (indices[0], operation))
            mine[key] = (indices[-1], operation)


def _polled(facts: Facts, step: Step) -> dict[Key, list[int]]:
    """Dense indices by key, in the order of reading; every value that was polled has one."""
    found: dict[Key, list[int]] = {}
    for key, records in step.reads:
        last = facts.logs[key].last
        found.setdefault(key, []).extend([last[value] for _, value in records])
    return found


def _sent(facts: Facts, step: Step) -> dict[Key, list[int]]:
    """Dense indices by key, in the order of sending; of those values whose place in the log is known."""
    found: dict[Key, list[int]] = {}
    for send in step.sends:
        index = facts.position(send.key, send.value)
        if index is not None:
            found.setdefault(send.key, []).append(index)
    return found


def _uneven(indices: list[int]) -> Iterator[tuple[int, int]]:
    """Neighbours that are not one step apart."""
    if len(indices) == 1 or indices == list(range(indices[0], indices[0] + len(indices))):
        return
    for before, after in pairwise(indices):
        if after - before != 1:
            yield before, after


def _anomaly(prefix: str, what: str, facts: Facts, key: Key, before: Place, after: Place) -> Anomaly:
    skipped = after[0] > before[0]
    name = f"{prefix}{what}-skip" if skipped else f"{prefix}nonmonotonic-{what}"
    log = facts.logs[key]
    text = " was followed by ".join(f"{log.values[i]!r} at offset {log.offsets[i]}" for i in (before[0], after[0]))
    operations = (before[1],) if before[1] is after[1] else (before[1], after[1])
    return Anomaly(name, text, operations, key, after[1].process)


def _forget(operation: Operation, mine: dict[Key, Place]) -> None:
    """What is not polled any more may be taken up anywhere; so may everything after a crash."""
    if not mine or operation.type == "fail":
        return
    if operation.function in MOVES:
        for key in [key for key in mine if key not in operation.keys]:
            del mine[key]
    elif operation.function == "crash":
        mine.clear()
