"""Anomalies of share groups: a record that came again though it was done with, and one that nobody ever got."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from penstock.sim.check.anomalies import Anomaly
from penstock.sim.check.facts import Facts
from penstock.sim.check.history import Key, Operation


def accepted_again(facts: Facts) -> Iterator[Anomaly]:
    """A member was handed what another one, or it, had been told to be done with before it asked."""
    accepted: dict[tuple[Key, int], Operation] = {}
    for operation, _, reads in facts.steps:
        if operation.function == "acknowledge" and operation.type == "ok":
            for one in operation.accepts():
                accepted.setdefault((one.key, one.offset), operation)
        elif operation.function == "take":
            invoked = facts.invoked[operation.number].number
            for key, records in reads:
                for offset, value in records:
                    done = accepted.get((key, offset))
                    if done is not None and done.number < invoked:
                        text = f"{value!r} at offset {offset} was accepted, and handed out again"
                        yield Anomaly("accepted-again", text, (done, operation), key)


def never_taken(facts: Facts, shared: Collection[Key], given_up: Collection[tuple[Key, int]]) -> Iterator[Anomaly]:
    """Acked, and no member of the group ever got it, though the group came to the end. `given_up`: handed out as often
    as may be, each time in vain."""
    for key in shared:
        taken = facts.taken.get(key, {})
        for value, writer in facts.writer.get(key, {}).items():
            if writer.type != "ok" or value in taken:
                continue
            index = facts.position(key, value)
            if index is not None and (key, facts.logs[key].offsets[index]) not in given_up:
                yield Anomaly("never-taken", f"{value!r} was acked, and no member was handed it", (writer,), key)
