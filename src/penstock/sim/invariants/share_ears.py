"""Doors of share-partitions that the simulator listens at: who is handed what, and what becomes of it. `share_ghost`
judges it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from penstock.broker.shared_partition import SharedPartition
from penstock.sim.invariants.share_ghost import ShareGhost
from penstock.sim.process import running_process

Leads = Callable[[str, str, int, int], bool]
"""whether a host leads a partition (topic, number) in an epoch, as the newest metadata say"""


class ShareEars:
    def __init__(self, ghost: ShareGhost, leads: Leads) -> None:
        self._ghost = ghost
        self._leads = leads

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """While it is open, everything that goes through these doors is heard."""
        doors = {
            "acquire": self._handing,
            "take": self._handing,
            "acknowledge": self._acknowledge,
            "release": self._release,
            "_written": self._written,
        }
        before = {name: vars(SharedPartition)[name] for name in doors}
        try:
            for name, ear in doors.items():
                setattr(SharedPartition, name, ear(before[name]))
            yield
        finally:
            for name, original in before.items():
                setattr(SharedPartition, name, original)

    def _handing(self, hand: Any) -> Any:
        def heard(shared: Any, member: str, *args: Any) -> Any:
            acquired = hand(shared, member, *args)
            if acquired:
                life, place = running_process(), shared.partition.name
                leads = self._leads(life.host, place.topic, place.partition, shared.leader_epoch)
                now_ms = shared._clock.monotonic_ms()
                self._ghost.handed_out(shared, life, member, acquired, now_ms, leads)
            return acquired

        return heard

    def _acknowledge(self, acknowledge: Any) -> Any:
        def heard(shared: Any, member: str, said: Any) -> Any:
            start = shared.share().start_offset
            told = acknowledge(shared, member, said)
            self._ghost.acknowledged(shared, running_process(), member, said, start, shared._clock.monotonic_ms())
            return told

        return heard

    def _release(self, release: Any) -> Any:
        def heard(shared: Any, member: str) -> None:
            self._ghost.released(shared, running_process(), member)
            release(shared, member)

        return heard

    def _written(self, written: Any) -> Any:
        def heard(shared: Any, share: Any, entries: Any, fault: Any) -> None:
            retry_ms = shared._clock.monotonic_ms()
            for entry in entries:
                if entry.change is not None:
                    self._ghost.kept(shared, running_process(), entry.change.batches, fault is None, retry_ms)
            written(shared, share, entries, fault)

        return heard
