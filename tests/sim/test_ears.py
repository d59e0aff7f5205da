"""What the simulator hears in the middle of an event."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.sim.invariants import ears
from penstock.sim.invariants.ears import Ears
from penstock.sim.invariants.watch import Watch
from tests.unit.core.replication.copies import described, leader


def test_a_leader_is_looked_at_before_it_resigns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One event may bring it a smaller ISR and then another leader: what it committed in between counts."""
    led = leader()
    seen: list[tuple[int, bool]] = []
    ghost: Any = SimpleNamespace(resigns=lambda node, partition: seen.append((node.id, partition.leading is not None)))
    nobody: Any = None
    nodes: Any = {"broker-1": SimpleNamespace(id=1, ready=True)}
    monkeypatch.setattr(ears, "running_process", lambda: SimpleNamespace(host="broker-1"))
    with Ears(nodes, ghost, nobody, nobody, nobody, nobody, nobody, nobody).open():
        led.follow(described(leader=2, epoch=1))
        led.follow(described(leader=3, epoch=2))
    assert seen == [(1, True)], "once, and while it led"


@pytest.mark.parametrize(("cut", "judged"), [(False, ["node"]), (True, [])])
def test_a_metadata_log_in_the_middle_of_a_cut_is_not_judged(cut: bool, judged: list[str]) -> None:
    """The power went there: a snapshot has taken the place of the log, and nobody knows of it yet."""
    log, seen = object(), []
    watch: Any = Watch.__new__(Watch)
    watch.ghost = SimpleNamespace(cutting={log: 0} if cut else {}, touched=lambda node: None)
    watch._images = SimpleNamespace(touched=lambda node: None)
    watch._quorum = SimpleNamespace(touched=lambda node: seen.append("node"))
    quorum = SimpleNamespace(_raft=SimpleNamespace(log=SimpleNamespace(log=log)))
    node: Any = SimpleNamespace(broker=SimpleNamespace(_quorum=quorum))
    watch.touched(node)
    assert seen == judged
