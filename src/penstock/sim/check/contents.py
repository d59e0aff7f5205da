"""Anomalies of what is in the log: told twice, told differently, read and never written, acked and never read."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sim.check.anomalies import Anomaly
from penstock.sim.check.facts import Facts
from penstock.sim.check.history import Operation


def inconsistent_offsets(facts: Facts) -> Iterator[Anomaly]:
    for key, log in facts.logs.items():
        for offset, told in sorted(log.conflicts.items()):
            text = f"offset {offset} holds {' and '.join(map(repr, told))}"
            yield Anomaly("inconsistent-offsets", text, _ordered(*told.values()), key)


def duplicates(facts: Facts) -> Iterator[Anomaly]:
    for key, log in facts.logs.items():
        for value, offsets in log.duplicates.items():
            tellers = [log.told_by(offset, value) for offset in offsets]
            text = f"{value!r} is at offsets {', '.join(map(str, offsets))}"
            yield Anomaly("duplicate", text, _ordered(*tellers), key)


def aborted_reads(facts: Facts) -> Iterator[Anomaly]:
    """An acknowledged read of what certainly was not written (G1a)."""
    for key, read in facts.read.items():
        writers = facts.writer.get(key, {})
        for value, reader in read.items():
            writer = writers.get(value)
            if writer is not None and writer.type == "fail":
                text = f"{value!r} was read, and its writing had failed"
                yield Anomaly("G1a", text, _ordered(writer, reader), key)


def precommitted_reads(facts: Facts) -> Iterator[Anomaly]:
    """An operation read what it wrote itself, before it was committed."""
    for operation, sends, reads in facts.steps:
        if not sends or not reads:
            continue
        own = {(send.key, send.value) for send in sends}
        for key, records in reads:
            for _, value in records:
                if (key, value) in own:
                    yield Anomaly("precommitted-read", f"its own {value!r} was read", (operation,), key)


def phantoms(facts: Facts) -> Iterator[Anomaly]:
    """A value was read that nobody sent."""
    for operation, _, reads in facts.steps:
        for key, records in reads:
            written = facts.writer.get(key, {})
            for _, value in records:
                if value not in written:
                    yield Anomaly("phantom", f"{value!r} was read, and nobody sent it", (operation,), key)


def lost_writes(facts: Facts) -> Iterator[Anomaly]:
    """Some record was read, and one before it in the log, which was surely written, never was.

    A value told at several offsets counts with its last one, and a bound with its first: whatever the truth is, the
    reader has passed it.
    """
    for key, log in facts.logs.items():
        read = facts.read.get(key)
        if not read:
            continue
        furthest = max(read, key=lambda value: log.first[value])
        bound = log.first[furthest]
        writers = facts.writer.get(key, {})
        for value, index in log.last.items():
            if value in read:
                continue
            writer = writers.get(value)
            if index > bound or writer is None or not facts.must_have_committed(writer):
                continue
            text = f"{value!r} at offset {log.offsets[index]} was never read, {furthest!r} after it was"
            yield Anomaly("lost-write", text, _ordered(writer, read[furthest]), key)


def unseen(facts: Facts) -> Iterator[Anomaly]:
    """Acked, and never read though everything was read at the end: also a lost tail, which nothing is read after."""
    for key, writers in facts.writer.items():
        read = facts.read.get(key, {})
        for value, writer in writers.items():
            if writer.type == "ok" and value not in read:
                yield Anomaly("unseen", f"{value!r} was acked and never read", (writer,), key)


def _ordered(*operations: Operation) -> tuple[Operation, ...]:
    return tuple(sorted({one.number: one for one in operations}.values(), key=lambda one: one.number))
