"""K3 as the simulator holds it: what is committed is on the disks of a majority, whatever became of its voters."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from penstock.sim.invariants import quorum_ghost
from penstock.sim.invariants.quorum_ghost import QuorumGhost
from penstock.sim.probes import QuorumProbe


class Voter(NamedTuple):
    id: int
    host: str = "broker"


LEADER, FOLLOWER = Voter(1), Voter(2)


def standing(*, end: int, synced: int, watermark: int = 0, leads: bool = False) -> QuorumProbe:
    return QuorumProbe(5, leads, -1, watermark, 0, end, synced, 5, None, 0, (1, 2, 3))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(quorum_ghost, "moved_quorum", lambda node, marks: marks.pop(node.id))
    monkeypatch.setattr(QuorumGhost, "_follow", lambda *of: None)
    return []


def see(ghost: QuorumGhost, voter: Any, probe: QuorumProbe) -> None:
    ghost._marks[voter.id] = probe  # type: ignore[assignment]  # what `moved_quorum` is to find
    ghost.touched(voter)


def test_what_a_voter_had_synced_counts_after_it_lost_its_power(told: list[str]) -> None:
    """It syncs 8 and says so; before the leader hears of that, it is back, with all of it, and counts from anew."""
    ghost = QuorumGhost(lambda invariant, _: told.append(invariant))
    see(ghost, FOLLOWER, standing(end=8, synced=8))
    see(ghost, FOLLOWER, standing(end=8, synced=3))
    see(ghost, LEADER, standing(end=8, synced=8, watermark=8, leads=True))
    assert told == []


def test_what_is_not_in_its_log_any_more_does_not(told: list[str]) -> None:
    ghost = QuorumGhost(lambda invariant, _: told.append(invariant))
    see(ghost, FOLLOWER, standing(end=8, synced=8))
    see(ghost, FOLLOWER, standing(end=5, synced=3))
    see(ghost, FOLLOWER, standing(end=8, synced=3))
    see(ghost, LEADER, standing(end=8, synced=8, watermark=8, leads=True))
    assert told == ["K3"]
