"""Anomalies of transactions: one that was seen in part, and a copy of a log that is not what the log is.

A copy is made by consume-transform-produce: every record of the source once, in the order of its partition, in
transactions that also hold how far it has come. Values of the copy tell which value of the source they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from penstock.sim.check.anomalies import Anomaly
from penstock.sim.check.facts import Facts
from penstock.sim.check.history import Key, Value


def torn_transactions(facts: Facts) -> Iterator[Anomaly]:
    """A part of a transaction was read, and another never, though everything was read at the end."""
    for operation, sends, _ in facts.steps:
        if operation.function != "txn" or operation.type == "fail":
            continue
        missing = [send for send in sends if send.value not in facts.read.get(send.key, {})]
        if missing and len(missing) < len(sends):
            text = f"{missing[0].value!r} was never read, other parts of its transaction were"
            yield Anomaly("torn-transaction", text, (operation,), missing[0].key)


def copy_anomalies(facts: Facts, pairs: Mapping[Key, Key], made_of: Callable[[Value], Value]) -> Iterator[Anomaly]:
    """`pairs`: source -> copy. copy-phantom, copy-duplicate, copy-reordered, copy-lost; everything was read at the end.
    What was not acked and lies behind all that was copied may have come when the copy was done."""
    for source, target in pairs.items():
        places = {value: index for index, value in enumerate(facts.logs[source].values)}
        copied: dict[Value, Value] = {}
        for value in facts.logs[target].values:
            origin = made_of(value)
            teller = facts.writer[target].get(value)
            told = (teller,) if teller is not None else ()
            if origin not in places:
                yield Anomaly("copy-phantom", f"{value!r} is a copy of nothing in {source!r}", told, target)
            elif origin in copied:
                yield Anomaly("copy-duplicate", f"{value!r} and {copied[origin]!r} are the same record", told, target)
            else:
                copied[origin] = value
        for before, after in pairwise(origin for origin in copied):
            if places[before] > places[after]:
                text = f"{copied[after]!r} stands behind {copied[before]!r}"
                yield Anomaly("copy-reordered", text, (), target)
        furthest = max((places[origin] for origin in copied), default=-1)
        for origin, index in places.items():
            writer = facts.writer[source].get(origin)
            if origin not in copied and (index < furthest or (writer is not None and writer.type == "ok")):
                yield Anomaly("copy-lost", f"{origin!r} was never copied", (), target)
