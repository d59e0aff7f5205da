"""Unattached: it knows of no leader, and looks for one. It may have voted in its epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.raft.peers import NEVER
from penstock.core.raft.rpc import NO_LEADER, Answer, Request, Vote

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft


class Unattached:
    name = "unattached"

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        """When a voter stands for election."""

    def poll(self, raft: Raft, now_ms: int) -> int:
        if raft.may_stand and (now_ms >= self.deadline_ms or not raft.others):
            raft.stand(now_ms)
            return now_ms
        due_ms = raft.look_for_leader(now_ms)
        return min(due_ms, self.deadline_ms if raft.may_stand else NEVER)

    def on_answer(self, raft: Raft, peer: int, request: Request, answer: Answer, now_ms: int) -> None:
        """Whom it names has been heeded already."""

    def on_failure(self, raft: Raft, peer: int, request: Request, refused: bool, now_ms: int) -> None:
        """Another one is asked next."""

    def grants(self, raft: Raft, vote: Vote) -> bool:
        if vote.pre_vote:
            return True
        return raft.leader.id == NO_LEADER and raft.voted in (None, vote.candidate)
