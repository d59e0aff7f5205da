"""What a follower tells the leader of itself: where it listens now, and that it would like to vote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.raft.peers import NEVER
from penstock.core.raft.rpc import AddVoter, RemoveVoter, Request, UpdateVoter

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft


class Membership:
    def __init__(self) -> None:
        self._next_ms = 0

    def poll(self, raft: Raft, now_ms: int) -> int:
        request = _wish(raft)
        if request is None:
            return NEVER
        if now_ms < self._next_ms:
            return self._next_ms
        return raft.ask(raft.leader.id, request, now_ms)

    def answered(self, raft: Raft, now_ms: int) -> None:
        """It may take until the change is in the log here: only then is it seen to be done."""
        self._next_ms = now_ms + raft.settings.fetch_timeout_ms


def _wish(raft: Raft) -> Request | None:
    if raft.history.kraft_version == 0:
        return None
    me, known = raft.me, raft.history.find(raft.me.id)
    if known is not None and known.directory_id == me.directory_id:
        return UpdateVoter(raft.epoch, me) if known != me else None
    if not raft.settings.auto_join:
        return None
    if known is not None:
        # The node lost its disk and has another: what it was before must go first, for it has forgotten its votes.
        return RemoveVoter(known.replica, raft.settings.request_timeout_ms)
    return AddVoter(me, raft.settings.request_timeout_ms, when_committed=False)
