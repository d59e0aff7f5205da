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


LAST = Voter(3)


def standing(
    *,
    end: int,
    synced: int,
    watermark: int = 0,
    leads: bool = False,
    voters: tuple[int, ...] = (1, 2, 3),
    open_: int = 0,
) -> QuorumProbe:
    """`open_`: changes of voters that are not committed."""
    return QuorumProbe(5, leads, -1, watermark, 0, end, synced, 5, None, open_, voters)


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


def test_a_voter_that_is_taken_out_takes_nothing_back(told: list[str]) -> None:
    """8 is committed by 1 and 2; then 2 loses its disk, and is taken out while 3 is still at 7."""
    ghost = QuorumGhost(lambda invariant, _: told.append(invariant))
    see(ghost, LAST, standing(end=8, synced=7))
    see(ghost, FOLLOWER, standing(end=8, synced=8))
    see(ghost, LEADER, standing(end=8, synced=8, watermark=8, leads=True))
    ghost.wiped(FOLLOWER)  # type: ignore[arg-type]  # its name is all that is looked at
    see(ghost, LEADER, standing(end=9, synced=8, watermark=8, leads=True, voters=(1, 3), open_=1))
    assert told == []


def test_what_is_committed_next_needs_those_who_are_left(told: list[str]) -> None:
    ghost = QuorumGhost(lambda invariant, _: told.append(invariant))
    see(ghost, LAST, standing(end=8, synced=7))
    see(ghost, FOLLOWER, standing(end=8, synced=8))
    see(ghost, LEADER, standing(end=8, synced=8, watermark=8, leads=True))
    see(ghost, LEADER, standing(end=9, synced=9, watermark=8, leads=True, voters=(1, 3), open_=1))
    see(ghost, FOLLOWER, standing(end=9, synced=9))
    see(ghost, LEADER, standing(end=9, synced=9, watermark=9, leads=True, voters=(1, 3)))
    assert told == ["K3"]


def test_what_was_counted_and_is_gone_is_missed(told: list[str]) -> None:
    """2 had synced 8, and cuts it off without having lost anything: the leader's watermark stands on nothing."""
    ghost = QuorumGhost(lambda invariant, _: told.append(invariant))
    see(ghost, FOLLOWER, standing(end=8, synced=8))
    see(ghost, LEADER, standing(end=8, synced=8, watermark=8, leads=True))
    see(ghost, FOLLOWER, standing(end=7, synced=7))
    see(ghost, LEADER, standing(end=9, synced=8, watermark=8, leads=True))
    assert told == ["K3"]
