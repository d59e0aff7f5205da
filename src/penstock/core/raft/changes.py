"""Changes of the voters, one at a time (KIP-853).

A change is written only when the leader has committed an entry of its own epoch and no earlier change is open: two
changes at once could make two majorities that have no voter in common (invariant K8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.base.ids import NO_ID
from penstock.core.raft.peers import NEVER
from penstock.core.raft.rpc import AddVoter, ChangeAnswer, RemoveVoter, Request, UpdateVoter
from penstock.core.raft.voters import Voter, Voters, encode_voters
from penstock.records.control import ControlType

if TYPE_CHECKING:
    from penstock.core.raft.leader import Leading
    from penstock.core.raft.raft import Raft

CAUGHT_UP_MS = 3_600_000
"""an observer that was not caught up for so long cannot become a voter"""


class Refused(Exception):
    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


@dataclass(slots=True)
class Open:
    """A change that is in the log and not committed."""

    token: int | None
    """None where it has been answered."""
    last_offset: int
    deadline_ms: int


class Changes:
    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._open: Open | None = None

    def begin(self, raft: Raft, token: int, request: Request, now_ms: int) -> None:
        try:
            self._check(raft)
            voters = self._changed(raft, request, now_ms)
        except Refused as refusal:
            raft.reply(token, ChangeAnswer(raft.address(), refusal.error, str(refusal)))
            return
        if voters == raft.history.voters:
            raft.reply(token, ChangeAnswer(raft.address()))
            return
        timeout_ms = raft.settings.request_timeout_ms if isinstance(request, UpdateVoter) else _timeout_ms(request)
        last_offset = self._leading.write(raft, [(ControlType.KRAFT_VOTERS, encode_voters(voters))], now_ms)
        waits = not isinstance(request, AddVoter) or request.when_committed
        self._open = Open(token if waits else None, last_offset, now_ms + timeout_ms)
        if not waits:
            raft.reply(token, ChangeAnswer(raft.address()))

    def poll(self, raft: Raft, now_ms: int) -> int:
        if self._open is None or self._open.token is None:
            return NEVER
        if now_ms >= self._open.deadline_ms:
            raft.reply(self._open.token, ChangeAnswer(raft.address(), ErrorCode.REQUEST_TIMED_OUT))
            self._open.token = None
            return NEVER
        return self._open.deadline_ms

    def on_committed(self, raft: Raft, now_ms: int) -> None:
        if self._open is None or raft.high_watermark <= self._open.last_offset:
            return
        done, self._open = self._open, None
        if done.token is not None:
            raft.reply(done.token, ChangeAnswer(raft.address()))

    def end(self, raft: Raft) -> None:
        if self._open is not None and self._open.token is not None:
            raft.reply(self._open.token, ChangeAnswer(raft.address(), ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self._open = None

    def _check(self, raft: Raft) -> None:
        if raft.history.kraft_version == 0:
            raise Refused(
                ErrorCode.UNSUPPORTED_VERSION, "the voters stand in the configuration: kraft.version is 0, not 1"
            )
        if self._open is not None or raft.history.offset >= raft.high_watermark:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT, "an earlier change of the voters is not committed yet")
        if not raft.is_leading:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed anything in its epoch yet")

    def _changed(self, raft: Raft, request: Request, now_ms: int) -> Voters:
        if isinstance(request, AddVoter):
            return self._added(raft, request, now_ms)
        if isinstance(request, RemoveVoter):
            return _removed(raft, request)
        assert isinstance(request, UpdateVoter)
        return _updated(raft, request)

    def _added(self, raft: Raft, request: AddVoter, now_ms: int) -> Voters:
        voter, voters = request.voter, raft.history.voters
        if raft.history.find(voter.id) is not None:
            raise Refused(ErrorCode.DUPLICATE_VOTER, f"node {voter.id} is a voter already")
        if voter.directory_id == NO_ID:
            raise Refused(ErrorCode.INVALID_REQUEST, f"node {voter.id} does not tell which directory it votes with")
        _check_endpoints(voter)
        known = self._leading.replicas.get(voter.replica)
        if known is None or known.caught_up_ms < 0 or now_ms - known.caught_up_ms >= CAUGHT_UP_MS:
            raise Refused(ErrorCode.REQUEST_TIMED_OUT, f"node {voter.id} has not caught up with the leader's log")
        return tuple(sorted((*voters, voter), key=lambda one: one.id))


def _removed(raft: Raft, request: RemoveVoter) -> Voters:
    left = tuple(one for one in raft.history.voters if one.replica != request.replica)
    if len(left) == len(raft.history.voters):
        raise Refused(ErrorCode.VOTER_NOT_FOUND, f"node {request.replica.id} with this directory is not a voter")
    if not left:
        raise Refused(ErrorCode.VOTER_NOT_FOUND, "the last voter cannot be removed")
    return left


def _updated(raft: Raft, request: UpdateVoter) -> Voters:
    voter = request.voter
    if not any(one.replica == voter.replica for one in raft.history.voters):
        raise Refused(ErrorCode.VOTER_NOT_FOUND, f"node {voter.id} with this directory is not a voter")
    _check_endpoints(voter)
    if not voter.kraft_version_min <= raft.history.kraft_version <= voter.kraft_version_max:
        raise Refused(ErrorCode.INVALID_REQUEST, f"node {voter.id} does not support the quorum's kraft.version")
    return tuple(voter if one.replica == voter.replica else one for one in raft.history.voters)


def _check_endpoints(voter: Voter) -> None:
    if not voter.endpoints:
        raise Refused(ErrorCode.INVALID_REQUEST, f"node {voter.id} does not tell where its controller listens")


def _timeout_ms(request: Request) -> int:
    assert isinstance(request, (AddVoter, RemoveVoter))
    return request.timeout_ms
