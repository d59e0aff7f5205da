"""Prospective (KIP-996): it has lost its leader and asks whether an election would be won. No epoch is spent on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.core.raft.election import Election
from penstock.core.raft.rpc import NO_LEADER, Answer, Request, Vote, VoteAnswer

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft


class Prospective:
    name = "prospective"

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.election = Election(pre_vote=True)

    def poll(self, raft: Raft, now_ms: int) -> int:
        if not raft.may_stand or now_ms >= self.deadline_ms or self.election.is_lost(raft):
            raft.stand_back(now_ms)
            return now_ms
        if self.election.is_won(raft):
            raft.campaign(now_ms)
            return now_ms
        return min(self.deadline_ms, self.election.poll(raft, now_ms))

    def on_answer(self, raft: Raft, peer: int, request: Request, answer: Answer, now_ms: int) -> None:
        if not isinstance(answer, VoteAnswer) or not isinstance(request, Vote) or not request.pre_vote:
            return
        if answer.error is ErrorCode.NONE:
            self.election.record(peer, answer.granted)
        if not answer.granted:
            raft.peers.pause(peer, "word", now_ms + raft.settings.eager_jitter_ms)

    def on_failure(self, raft: Raft, peer: int, request: Request, refused: bool, now_ms: int) -> None:
        """It is asked again."""

    def grants(self, raft: Raft, vote: Vote) -> bool:
        if vote.pre_vote:
            return True
        return raft.leader.id == NO_LEADER and raft.voted in (None, vote.candidate)
