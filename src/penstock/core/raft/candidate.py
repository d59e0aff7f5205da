"""Candidate: it has begun an epoch, voted for itself, and asks the others for their votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.core.raft.election import Election
from penstock.core.raft.rpc import Answer, Request, Vote, VoteAnswer

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft


class Candidate:
    name = "candidate"

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.election = Election(pre_vote=False)

    def poll(self, raft: Raft, now_ms: int) -> int:
        if self.election.is_won(raft) and raft.may_stand:
            raft.lead([raft.me.id, *self.election.granted], now_ms)
            return now_ms
        if now_ms >= self.deadline_ms or self.election.is_lost(raft) or not raft.may_stand:
            raft.defer(now_ms)
            return now_ms
        return min(self.deadline_ms, self.election.poll(raft, now_ms))

    def on_answer(self, raft: Raft, peer: int, request: Request, answer: Answer, now_ms: int) -> None:
        if not isinstance(answer, VoteAnswer) or not isinstance(request, Vote):
            return
        if answer.error is ErrorCode.NONE and not request.pre_vote and request.epoch == raft.epoch:
            self.election.record(peer, answer.granted)

    def on_failure(self, raft: Raft, peer: int, request: Request, refused: bool, now_ms: int) -> None:
        """It is asked again."""

    def grants(self, raft: Raft, vote: Vote) -> bool:
        return vote.pre_vote
