"""Follower: it fetches from the leader of its epoch, as a voter or as an observer.

A fetch tells the leader how much of the log is durable here: so the next one leaves only after the last one's records
have been synced. A voter that hears nothing for the fetch timeout, or whose leader's node refuses it, asks the others
whether they have lost the leader too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.core.raft.log_ends import truncation_point
from penstock.core.raft.membership import Membership
from penstock.core.raft.rpc import (
    Answer,
    ChangeAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    Request,
    SnapshotAnswer,
    Vote,
)
from penstock.core.raft.snapshot import SnapshotId

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft

_NO_ROOM_MS = 100
"""before what could not be written is fetched again"""


class Follower:
    name = "follower"

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        """When the leader is given up."""
        self.has_fetched = False
        """The leader is alive as far as this node knows: it grants no pre-vote."""
        self.snapshot: SnapshotId | None = None
        """The one that is being fetched."""
        self.position = 0
        self._membership = Membership()

    def poll(self, raft: Raft, now_ms: int) -> int:
        if now_ms >= self.deadline_ms:
            if raft.may_stand:
                raft.stand(now_ms)
            else:
                raft.lose_leader(now_ms)
            return now_ms
        due_ms = self._membership.poll(raft, now_ms) if self.has_fetched else self.deadline_ms
        if raft.log.synced_offset < raft.log.end_offset:
            return min(self.deadline_ms, due_ms)
        return min(self.deadline_ms, due_ms, raft.ask(raft.leader.id, self._request(raft), now_ms))

    def on_answer(self, raft: Raft, peer: int, request: Request, answer: Answer, now_ms: int) -> None:
        if peer != raft.leader.id:
            return
        if isinstance(answer, FetchAnswer):
            self._on_fetched(raft, request, answer, now_ms)
        elif isinstance(answer, SnapshotAnswer):
            self._on_snapshot(raft, request, answer, now_ms)
        elif isinstance(answer, ChangeAnswer):
            self._membership.answered(raft, now_ms)

    def on_failure(self, raft: Raft, peer: int, request: Request, refused: bool, now_ms: int) -> None:
        if peer != raft.leader.id or not refused or not isinstance(request, (Fetch, FetchSnapshot)):
            return
        if not raft.may_stand:
            raft.lose_leader(now_ms)
        elif raft.settings.eager:
            self.has_fetched = False
            self.deadline_ms = min(self.deadline_ms, raft.soon_ms(now_ms))

    def grants(self, raft: Raft, vote: Vote) -> bool:
        return vote.pre_vote and not self.has_fetched

    def heard(self, raft: Raft, now_ms: int) -> None:
        """The leader is there."""
        self.deadline_ms = now_ms + raft.settings.fetch_timeout_ms

    def ended(self, raft: Raft, successors: list[int], now_ms: int) -> None:
        """The leader has resigned: the voter that it likes best stands at once, the others a little later."""
        self.has_fetched = False
        if raft.may_stand:
            place = successors.index(raft.me.id) if raft.me.id in successors else len(successors)
            wait_ms = place * raft.settings.eager_jitter_ms
            self.deadline_ms = min(self.deadline_ms, now_ms + wait_ms + raft.below(wait_ms))

    def _request(self, raft: Raft) -> Request:
        if self.snapshot is None:
            return raft.fetch(raft.settings.fetch_wait_ms)
        return FetchSnapshot(
            raft.epoch, raft.me.replica, self.snapshot, self.position, raft.settings.snapshot_max_bytes
        )

    def _on_fetched(self, raft: Raft, request: Request, answer: FetchAnswer, now_ms: int) -> None:
        if answer.error is not ErrorCode.NONE:
            self._on_refused(raft, answer.error, now_ms)
            return
        self.heard(raft, now_ms)
        self.has_fetched = True
        log = raft.log
        if not isinstance(request, Fetch) or request.offset != log.end_offset:
            return
        if answer.diverging is not None:
            point = truncation_point(log, *answer.diverging)
            assert point >= raft.high_watermark, "what is committed is never cut"
            log.truncate(point)
            raft.history.cut(point)
        elif answer.snapshot is not None:
            self.snapshot, self.position = answer.snapshot, 0
        else:
            if answer.records:
                for offset, (kind, value) in log.append_fetched(answer.records, raft.epoch):
                    raft.history.learn(kind, value, offset)
                if log.end_offset == request.offset:
                    # The disk has no room. The leader has them at once, whenever it is asked: we need not ask at once.
                    raft.peers.pause(raft.leader.id, "fetch", now_ms + _NO_ROOM_MS)
            raft.told_watermark = max(raft.told_watermark or 0, answer.high_watermark)
            raft.commit_to(answer.high_watermark)

    def _on_refused(self, raft: Raft, error: ErrorCode, now_ms: int) -> None:
        """It answers, but leads no more: it has resigned, or was restarted."""
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and raft.settings.eager and raft.may_stand:
            self.has_fetched = False
            self.deadline_ms = min(self.deadline_ms, raft.soon_ms(now_ms))

    def _on_snapshot(self, raft: Raft, request: Request, answer: SnapshotAnswer, now_ms: int) -> None:
        if answer.error is not ErrorCode.NONE:
            # Gone, or another one is there by now: the next fetch says which.
            self.snapshot = None
            return
        self.heard(raft, now_ms)
        self.has_fetched = True
        if self.snapshot != answer.snapshot or self.position != answer.position:
            return
        raft.log.write_snapshot(self.snapshot, self.position, answer.data)
        self.position += len(answer.data)
        if self.position >= answer.size:
            self._install(raft, self.snapshot, now_ms)
            self.snapshot = None

    def _install(self, raft: Raft, snapshot: SnapshotId, now_ms: int) -> None:
        controls = raft.log.install_snapshot(snapshot)
        if controls is None:
            # Damaged where it lies, as it seems: it is fetched again, but not without end as fast as it can be sent.
            raft.peers.pause(raft.leader.id, "fetch", now_ms + raft.settings.retry_backoff_ms)
            return
        raft.history.forget()
        for kind, value in controls:
            raft.history.learn(kind, value, snapshot.offset - 1)
        raft.commit_to(snapshot.offset)
