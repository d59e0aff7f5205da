"""Invariants K1-K8 of the metadata quorum under faults, seed by seed, and that it goes on once they are over.

The checks themselves are put to the test: each planted bug has to be caught.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.core.raft import answering
from penstock.core.raft.candidate import Candidate
from penstock.core.raft.leader import Leading
from penstock.core.raft.raft import Raft
from penstock.core.raft.rpc import Vote
from penstock.core.raft.settings import Settings
from penstock.core.raft.unattached import Unattached
from penstock.core.raft.voters import Voter
from tests.sim.raft_world import WatchedLog, World


def run(seed: int, faults_ms: int = 20_000) -> World:
    voters, observers = [(3, 0), (3, 1), (5, 0), (4, 1)][seed % 4]
    world = World(seed, voters, observers)
    world.start_all()
    world.load(40, "t")
    world.after(500, lambda: world.hurt(700))
    world.run(faults_ms)
    return world


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_broken_by_faults_and_all_is_well_afterwards(seed: int):
    world = run(seed)
    committed_end = world.ghost.committed_end
    world.heal()
    assert world.run(30_000, lambda: is_well(world) and world.ghost.committed_end > committed_end)


def is_well(world: World) -> bool:
    """One leader, everybody follows it and votes, and has everything that is committed."""
    leaders = world.leaders()
    if len(leaders) != 1:
        return False
    raft = leaders[0].raft
    return all(
        node.raft.leader.id == leaders[0].id
        and node.raft.high_watermark == raft.high_watermark
        and raft.history.is_voter(node.replica)
        for node in world.nodes.values()
    )


def test_a_seed_is_a_run():
    first, second = run(2, 6_000), run(2, 6_000)
    assert first.ghost.batches == second.ghost.batches
    assert (first.events, first.chance.random()) == (second.events, second.chance.random())


def votes_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Unattached, "grants", lambda role, raft, vote: True)
    patch.setattr(Candidate, "grants", lambda role, raft, vote: True)

    def vote(raft: Raft, candidate: object, now_ms: int) -> None:
        raft._enter(Unattached(raft.patience_ms(now_ms)))

    patch.setattr(Raft, "vote", vote)


def votes_for_a_shorter_log(patch: pytest.MonkeyPatch) -> None:
    def forget(raft: Raft, vote: Vote, now_ms: int, honest: Callable[..., object] = answering._vote) -> object:
        end_offset = max(vote.end_offset, raft.log.end_offset)
        boasting = Vote(
            vote.epoch, vote.candidate, vote.voter, max(vote.last_epoch, raft.log.last_epoch), end_offset, vote.pre_vote
        )
        return honest(raft, boasting, now_ms)

    patch.setattr(answering, "_vote", forget)


def counts_what_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    def end_of(role: Leading, raft: Raft, voter: Voter, honest: Callable[..., int] = Leading._end_of) -> int:
        return raft.log.end_offset if voter.id == raft.me.id else honest(role, raft, voter)

    patch.setattr(Leading, "_end_of", end_of)


def fetches_before_it_has_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WatchedLog, "synced_offset", property(lambda log: log.end_offset))


def only_starts(seed: int) -> None:
    """All at once, and none is patient: there are often several candidates."""
    world = World(seed, 3 + seed % 3, settings=Settings(eager=True, eager_jitter_ms=10))
    world.start_all()
    world.run(1_500)


PLANTED: list[tuple[Callable[[pytest.MonkeyPatch], None], str, Callable[[int], object]]] = [
    (votes_twice, "K1", only_starts),
    (votes_for_a_shorter_log, "K5|K4", run),
    (counts_what_is_not_synced, "K3", run),
    (fetches_before_it_has_synced, "K3", run),
]


@pytest.mark.parametrize(("bug", "caught_by", "world"), PLANTED, ids=[bug.__name__ for bug, _, _ in PLANTED])
def test_a_planted_bug_is_caught(
    bug: Callable[[pytest.MonkeyPatch], None], caught_by: str, world: Callable[[int], object]
):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(AssertionError, match=caught_by):
        bug(patch)
        for seed in range(100):
            world(seed)
