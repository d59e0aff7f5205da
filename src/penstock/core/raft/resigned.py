"""Resigned: it led this epoch and does not any more. The other voters are told, the best of them first in line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.core.raft.rpc import Answer, EndEpoch, EpochAnswer, Request, Vote
from penstock.core.raft.voters import Replica

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft


class Resigned:
    name = "resigned"

    def __init__(self, successors: tuple[Replica, ...], deadline_ms: int) -> None:
        self.successors = successors
        self.deadline_ms = deadline_ms
        """When it becomes a voter like the others."""
        self.told: dict[int, None] = {}

    def is_told(self, raft: Raft) -> bool:
        return all(one.id in self.told for one in raft.others)

    def poll(self, raft: Raft, now_ms: int) -> int:
        if now_ms >= self.deadline_ms or not raft.others:
            raft.stand_back(now_ms)
            return now_ms
        due_ms = self.deadline_ms
        request = EndEpoch(raft.epoch, raft.me.id, raft.me.endpoints, self.successors)
        for voter in raft.others:
            if voter.id not in self.told:
                due_ms = min(due_ms, raft.ask(voter.id, request, now_ms))
        return due_ms

    def on_answer(self, raft: Raft, peer: int, request: Request, answer: Answer, now_ms: int) -> None:
        if isinstance(answer, EpochAnswer) and isinstance(request, EndEpoch) and answer.error is ErrorCode.NONE:
            self.told[peer] = None

    def on_failure(self, raft: Raft, peer: int, request: Request, refused: bool, now_ms: int) -> None:
        if refused:
            self.told[peer] = None

    def grants(self, raft: Raft, vote: Vote) -> bool:
        return vote.pre_vote
