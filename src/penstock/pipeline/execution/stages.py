"""One shuffle's worth of keyed nodes, in a streaming query: the rows of each key meet what its node kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.pipeline.execution.errors import telling
from penstock.pipeline.execution.packets import CLOCK, Clocks, Packets, advance, opened, rows_of, told_clocks
from penstock.pipeline.execution.plan import Plan
from penstock.pipeline.execution.shipping import Shipped
from penstock.pipeline.execution.slot_state import KeyRecord, SlotState
from penstock.pipeline.execution.slots import slot_names
from penstock.pipeline.execution.store import Store
from penstock.pipeline.topology.flow import Shuffled

KEYS_AT_ONCE: Final = 512
"""Keys whose state is in memory at the same time."""

Rows = dict[bytes, list[Shuffled]]


class Stage(StatefulProcessor):
    """For transformWithState, grouped by slot."""

    def __init__(self, shipped: Shipped, stage: int, slots: int) -> None:
        self._shipped, self._stage, self._slots = shipped, stage, slots
        self._store: Store | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = Store(handle)

    def handleInputRows(self, key: Any, rows: Iterable[Row], timerValues: Any) -> Iterator[Row]:
        with telling():
            assert self._store is not None
            slot = bytes(key[0])
            mine: list[bytes] = []
            for row in rows:
                if row.stage == self._stage:
                    mine.append(row.rows)
                else:
                    yield row
            if mine:
                work = SlotWork(self._shipped.open(), self._stage, self._slots)
                yield from rows_of(work.run(self._store, slot, mine))

    def close(self) -> None:
        self._store = None


class SlotWork:
    """A slot's share of a batch."""

    def __init__(self, plan: Plan, stage: int, slots: int) -> None:
        self._plan, self._flow = plan, plan.flow
        self._stage, self._slots = stage, slots
        self._slot = -1
        self._packets = Packets(slots)
        self._waiting: dict[int, Rows] = {node: {} for node in plan.nodes_of(stage)}

    def run(self, store: Store, slot: bytes, packed: Iterable[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
        self._slot = slot_names(self._slots).index(slot)
        news: Clocks = {}
        for rows in packed:
            for row in opened(rows):
                if row.node == CLOCK:
                    advance(news, told_clocks(row))
                else:
                    self._waiting[row.node].setdefault(row.key, []).append(row)
        state = SlotState(store, slot, (self._plan.digest, self._slots))
        before = dict(state.clocks)
        advance(state.clocks, news)
        for node in self._plan.nodes_of(self._stage):
            now = self._plan.reached(node, state.clocks)
            self._step(node, state, self._plan.reached(node, before), now)
            self._wake(node, state, now)
            yield from self._packets.full()
        state.leave()
        yield from self._packets.rest()

    def _step(self, node: int, state: SlotState, floor: int, now: int) -> None:
        rows = self._waiting[node]
        for keys in _chunks(rows, KEYS_AT_ONCE):
            records = state.records(node, keys)
            for record in records:
                self._emit(self._flow.step(node, record.key, rows[record.key], record, floor))
                self._expire(node, record, now)
            state.keep(node, records, now)

    def _wake(self, node: int, state: SlotState, now: int) -> None:
        for at, listed in state.due(node, now):
            for keys in _chunks(listed, KEYS_AT_ONCE):
                records = state.records(node, keys)
                for record in records:
                    if record.hint == at:
                        record.hint = None
                    self._expire(node, record, now)
                state.keep(node, records, now)

    def _expire(self, node: int, record: KeyRecord, now: int) -> None:
        if record.wake is not None and record.wake <= now:
            self._emit(self._flow.expire(node, record.key, record, now))

    def _emit(self, rows: list[Shuffled]) -> None:
        for row in rows:
            stage = self._plan.stage_of(row.node)
            slot = self._plan.slot_of(row, self._slots)
            if stage == self._stage:
                assert slot == self._slot, f"a row for node {row.node} leaves its slot, and has no stage to go to"
                self._waiting[row.node].setdefault(row.key, []).append(row)
            else:
                self._packets.add(stage, slot, row)


def _chunks(keys: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    waiting = iter(list(keys))
    while some := list(islice(waiting, size)):
        yield some
