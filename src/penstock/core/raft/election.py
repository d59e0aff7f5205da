"""The voices that a voter has gathered, for a pre-vote or a vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.raft.peers import NEVER
from penstock.core.raft.rpc import Vote

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft


class Election:
    def __init__(self, *, pre_vote: bool) -> None:
        self.pre_vote = pre_vote
        self.granted: dict[int, None] = {}
        self.denied: dict[int, None] = {}

    def record(self, peer: int, granted: bool) -> None:
        if granted:
            self.granted[peer] = None
            self.denied.pop(peer, None)
        elif peer not in self.granted:
            self.denied[peer] = None

    def is_won(self, raft: Raft) -> bool:
        """This node's own voice counts, without being asked."""
        voices = sum(1 for one in raft.history.voters if one.id in self.granted or one.id == raft.me.id)
        return voices >= raft.majority

    def is_lost(self, raft: Raft) -> bool:
        against = sum(1 for one in raft.history.voters if one.id in self.denied)
        return against > len(raft.history.voters) - raft.majority

    def poll(self, raft: Raft, now_ms: int) -> int:
        """Ask those who have not said yes; whoever denied a pre-vote may think otherwise a moment later."""
        due_ms = NEVER
        for voter in raft.others:
            if voter.id in self.granted or (voter.id in self.denied and not self.pre_vote):
                continue
            log = raft.log
            request = Vote(
                raft.epoch, raft.me.replica, voter.replica, log.last_epoch, log.end_offset, pre_vote=self.pre_vote
            )
            due_ms = min(due_ms, raft.ask(voter.id, request, now_ms))
        return due_ms
