"""The verdict on a history: every anomaly, which of them matter, and the shape of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from penstock.sim.check import contents, order
from penstock.sim.check.anomalies import (
    ALLOWED_OF_SHARE_GROUPS,
    ALLOWED_WHEN_SUBSCRIBED,
    ALLOWED_WITH_WRITE_ORDER,
    ALWAYS_ALLOWED,
    Anomaly,
)
from penstock.sim.check.copies import copy_anomalies, torn_transactions
from penstock.sim.check.cycles import cycles
from penstock.sim.check.facts import Facts
from penstock.sim.check.history import Key, Operation, Process, Value
from penstock.sim.check.lag import Lag, worst_lag
from penstock.sim.check.shares import accepted_again, never_taken

_NO_COPIES: Mapping[Key, Key] = {}
EXAMPLES_MAX = 8
"""Anomalies of one name that are kept; the others are counted"""

_LOOKS: tuple[Callable[[Facts], Iterator[Anomaly]], ...] = (
    contents.inconsistent_offsets,
    contents.duplicates,
    contents.aborted_reads,
    contents.precommitted_reads,
    contents.phantoms,
    contents.lost_writes,
    order.polls,
    order.sends,
    accepted_again,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    anomalies: tuple[Anomaly, ...]
    """those that break the contract, up to `EXAMPLES_MAX` of a name"""
    counts: dict[str, int]
    """how many of each name there are"""
    allowed: dict[str, int]
    """how many there are that the contract allows"""
    shape: dict[str, int]
    """completed operations by function and type, "send ok" and the like"""
    records_read: int
    read_again: int
    """records that a subscribed process polled more than once: for information"""
    worst_lag: Lag | None

    @property
    def valid(self) -> bool:
        return not self.counts

    def __str__(self) -> str:
        if self.valid:
            return f"no anomaly in {sum(self.shape.values())} operations, {self.records_read} records read"
        found = ", ".join(f"{count} x {name}" for name, count in self.counts.items())
        return "\n  ".join([found, *map(str, self.anomalies)])


def check(
    history: Iterable[Operation],
    *,
    read_to_end: bool = True,
    write_order: bool = False,
    copies: Mapping[Key, Key] = _NO_COPIES,
    made_of: Callable[[Value], Value] = lambda value: value,
    shared: Collection[Key] = (),
    given_up: Collection[tuple[Key, int]] = (),
) -> Verdict:
    """`read_to_end`: everything was read at the end, so that what nobody read is lost. `write_order`: also look at
    cycles through the order of writes, all of which Kafka allows. `copies`: source -> copy, of logs that were copied to
    the end, exactly once; `made_of` tells of which value of the source one of the copy was made. `shared`: logs that a
    share group came to the end of; `given_up`: (key, offset) of what it was handed too often to get again.
    """
    facts = Facts(history)
    subscribed = {step.operation.process: None for step in facts.steps if step.operation.function == "subscribe"}
    kept: list[Anomaly] = []
    counts: Counter[str] = Counter()
    allowed: Counter[str] = Counter()
    found: Iterator[Anomaly] = _found(facts, read_to_end, write_order)
    if read_to_end:
        found = chain(found, copy_anomalies(facts, copies, made_of), never_taken(facts, shared, given_up))
    for anomaly in found:
        if _is_allowed(anomaly, subscribed, write_order):
            allowed[anomaly.name] += 1
            continue
        counts[anomaly.name] += 1
        if counts[anomaly.name] <= EXAMPLES_MAX:
            kept.append(anomaly)
    records, again = _read_counts(facts, subscribed)
    shape = Counter(f"{step.operation.function} {step.operation.type}" for step in facts.steps)
    return Verdict(tuple(kept), dict(counts), dict(allowed), dict(shape), records, again, worst_lag(facts))


def _found(facts: Facts, read_to_end: bool, write_order: bool) -> Iterator[Anomaly]:
    for look in _LOOKS:
        yield from look(facts)
    if read_to_end:
        yield from contents.unseen(facts)
        yield from torn_transactions(facts)
    yield from cycles(facts, write_order)


def _is_allowed(anomaly: Anomaly, subscribed: dict[Process, None], write_order: bool) -> bool:
    return (
        anomaly.name in ALWAYS_ALLOWED | ALLOWED_OF_SHARE_GROUPS
        or (anomaly.name in ALLOWED_WHEN_SUBSCRIBED and anomaly.process in subscribed)
        or (anomaly.name in ALLOWED_WITH_WRITE_ORDER and write_order)
    )


def _read_counts(facts: Facts, subscribed: dict[Process, None]) -> tuple[int, int]:
    total = again = 0
    seen: dict[Process, set[tuple[object, int]]] = {process: set() for process in subscribed}
    for operation, _, reads in facts.steps:
        mine = seen.get(operation.process)
        for key, records in reads:
            total += len(records)
            if mine is not None:
                again += sum((key, offset) in mine for offset, _ in records)
                mine.update((key, offset) for offset, _ in records)
    return total, again
