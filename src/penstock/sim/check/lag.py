"""How old what was polled was, at least: a conservative staleness, for information."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from penstock.sim.check.facts import Facts
from penstock.sim.check.history import Key, Operation


@dataclass(frozen=True, slots=True)
class Lag:
    key: Key
    lag_ns: int
    operation: Operation


def worst_lag(facts: Facts) -> Lag | None:
    """The `ok` poll that ended furthest behind: from when a later record was surely known to the poll's invocation."""
    outdated = {key: _outdated_ns(facts, key, times) for key, times in _known_ns(facts).items()}
    worst: Lag | None = None
    for operation, _, reads in facts.steps:
        if operation.type != "ok":
            continue
        for key, records in reads:
            since = outdated[key][facts.logs[key].last[records[-1][1]]]
            lag_ns = 0 if since is None else max(0, facts.invoked[operation.number].time_ns - since)
            if worst is None or lag_ns > worst.lag_ns:
                worst = Lag(key, lag_ns, operation)
    return worst


def _known_ns(facts: Facts) -> dict[Key, dict[int, int]]:
    """By key and dense index: when an operation that sent the record, or read up to it, had completed first."""
    known: dict[Key, dict[int, int]] = {key: {} for key in facts.logs}
    for operation, sends, reads in facts.steps:
        if operation.type != "ok":
            continue
        for send in sends:
            index = facts.position(send.key, send.value)
            if index is not None:
                known[send.key].setdefault(index, operation.time_ns)
        for key, records in reads:
            known[key].setdefault(facts.logs[key].last[records[-1][1]], operation.time_ns)
    return known


def _outdated_ns(facts: Facts, key: Key, known: dict[int, int]) -> list[int | None]:
    """By dense index: when a later record was known first; None where none ever was."""
    never = 1 << 200
    times = [known.get(index, never) for index in range(len(facts.logs[key].values))]
    earliest_from = list(accumulate(reversed(times), min))[::-1]
    return [time_ns if time_ns != never else None for time_ns in [*earliest_from[1:], never]]
