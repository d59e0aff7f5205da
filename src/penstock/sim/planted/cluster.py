"""Planted bugs of the quorum and of replication, which three brokers show."""

from __future__ import annotations

from typing import Any

from penstock.core.metadata.image import Partition as Described
from penstock.core.raft.leader import Leading as QuorumLeading
from penstock.core.raft.raft import Raft
from penstock.core.raft.rpc import Vote
from penstock.core.raft.unattached import Unattached
from penstock.core.raft.voters import Voter
from penstock.core.replication.leading import Leading
from penstock.core.replication.partition import Partition
from penstock.sim.planted.bug import Bug, Patch

_KILLS = {"faults": ("kill", "pause"), "fault_every_ms": 300, "fault_ms": 4_000, "think_ms": 2, "flush": True}


def _own_end_unsynced(self: QuorumLeading, raft: Raft, voter: Voter) -> int:
    """The leader counts itself with what it has written, synced or not."""
    if voter.id == raft.me.id:
        return raft.log.end_offset
    known = self.progress_of(voter)
    return known.end_offset if known is not None else -1


def _all_have_it(self: QuorumLeading, raft: Raft, voter: Voter) -> int:
    """What the leader has synced counts as everybody's."""
    return raft.log.synced_offset


def _grant_to_all(self: Unattached, raft: Raft, vote: Vote) -> bool:
    """Whoever asks gets the vote."""
    return True


def _vote_again(self: Raft, candidate: Any, now_ms: int) -> None:
    self._become(self.epoch, self.leader, candidate)
    self._enter(Unattached(self.patience_ms(now_ms)))


_follow = Partition.follow


def _follow_from_watermark(self: Partition, described: Described) -> bool:
    """A follower begins where its watermark is, whatever it has beyond."""
    news = _follow(self, described)
    if news and self.log.end_offset > self.high_watermark:
        self.log.truncate(self.high_watermark)
    return news


def _committed_alone(self: Leading, own_end: int, leader_end: int) -> int:
    """The watermark also moves while too few copies are in sync."""
    end = own_end
    for replica in self.replicas.values():
        if replica.end_offset < end and self._counts(replica, leader_end):
            end = replica.end_offset
    return end


def _committed_at_once(self: Leading, own_end: int, leader_end: int) -> int:
    """What the leader has is committed."""
    return own_end


CLUSTER_BUGS = (
    Bug(
        "quorum-counts-unsynced",
        "Raft, and KRaft's own rule: a leader may count itself only for what it has flushed",
        "the quorum's leader counts itself with what is not synced",
        (Patch(QuorumLeading, "_end_of", _own_end_unsynced),),
        ("K3",),
        within=6,
        nodes=3,
        events=2_000,
    ),
    Bug(
        "quorum-of-one",
        "Raft: an entry is committed once a majority has it",
        "the quorum's leader commits what it alone has",
        (Patch(QuorumLeading, "_end_of", _all_have_it),),
        ("K3", "K7"),
        within=3,
        nodes=3,
        events=1_000,
    ),
    Bug(
        "votes-twice",
        "Raft: one vote an epoch, persisted before it is given",
        "a voter gives its vote to whoever asks",
        (Patch(Unattached, "grants", _grant_to_all), Patch(Raft, "vote", _vote_again)),
        ("K1", "K2", "R1", "bug"),
        seed=5,
        within=20,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "truncate-to-watermark",
        "KIP-101, first scenario",
        "a follower cuts its log to its own watermark, and may be elected then",
        (Patch(Partition, "follow", _follow_from_watermark),),
        ("S1", "R2", "R4", "history"),
        within=10,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "watermark-under-min-isr",
        "KAFKA-15583, KIP-966",
        "the watermark moves while fewer copies are in sync than must be",
        (Patch(Leading, "committed", _committed_alone),),
        ("R6",),
        within=10,
        seed=11,
        nodes=3,
        options=_KILLS,
    ),
    Bug(
        "committed-at-once",
        "KAFKA-7395, KIP-320 and every bug by which a watermark passes a copy in sync",
        "the leader's watermark does not wait for the copies in sync",
        (Patch(Leading, "committed", _committed_at_once),),
        ("R2", "R4", "R6", "history"),
        within=10,
        nodes=3,
        options=_KILLS,
    ),
)
