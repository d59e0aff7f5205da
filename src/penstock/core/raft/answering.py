"""Requests of other nodes and how they are answered, with Kafka's error codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.base.ids import NO_ID
from penstock.core.raft.follower import Follower
from penstock.core.raft.leader import Leading
from penstock.core.raft.prospective import Prospective
from penstock.core.raft.rpc import (
    NO_LEADER,
    Answer,
    BeginEpoch,
    ChangeAnswer,
    EndEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    Leader,
    Received,
    Request,
    SnapshotAnswer,
    UpdateVoter,
    Vote,
    VoteAnswer,
)
from penstock.core.raft.voters import Replica

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft


def answer(raft: Raft, event: Received, now_ms: int) -> None:
    request = event.request
    if isinstance(request, Vote):
        raft.reply(event.token, _vote(raft, request, now_ms))
    elif isinstance(request, BeginEpoch):
        raft.reply(event.token, _begin_epoch(raft, request, now_ms))
    elif isinstance(request, EndEpoch):
        raft.reply(event.token, _end_epoch(raft, request, now_ms))
    else:
        _leaders_business(raft, event.token, request, now_ms)


def refusal(raft: Raft, request: Request, error: ErrorCode) -> Answer:
    leader = raft.address()
    if isinstance(request, Fetch):
        return FetchAnswer(leader, error)
    if isinstance(request, FetchSnapshot):
        return SnapshotAnswer(leader, request.snapshot, error)
    return ChangeAnswer(leader, error)


def _leaders_business(raft: Raft, token: int, request: Request, now_ms: int) -> None:
    error = _not_for_us(raft, request)
    if error is not ErrorCode.NONE:
        raft.reply(token, refusal(raft, request, error))
        return
    role = raft.role
    assert isinstance(role, Leading)
    if isinstance(request, Fetch):
        role.on_fetch(raft, token, request, now_ms)
    elif isinstance(request, FetchSnapshot):
        raft.reply(token, role.on_fetch_snapshot(raft, request, now_ms))
    else:
        role.changes.begin(raft, token, request, now_ms)


def _not_for_us(raft: Raft, request: Request) -> ErrorCode:
    if isinstance(request, (Fetch, FetchSnapshot, UpdateVoter)):
        if request.epoch < raft.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.epoch > raft.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if isinstance(raft.role, Leading) else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _vote(raft: Raft, vote: Vote, now_ms: int) -> VoteAnswer:
    if vote.epoch < raft.epoch:
        return VoteAnswer(raft.address(), error=ErrorCode.FENCED_LEADER_EPOCH)
    if not _makes_sense(raft, vote) or vote.candidate.id == raft.me.id:
        return VoteAnswer(raft.address(), error=ErrorCode.INVALID_REQUEST)
    if not _is_meant(raft, vote.voter):
        return VoteAnswer(raft.address(), error=ErrorCode.INVALID_VOTER_KEY)
    if vote.epoch > raft.epoch:
        raft.enter_epoch(vote.epoch, now_ms)
    up_to_date = (vote.last_epoch, vote.end_offset) >= (raft.log.last_epoch, raft.log.end_offset)
    granted = up_to_date and raft.role.grants(raft, vote)
    if granted and not vote.pre_vote:
        raft.vote(vote.candidate, now_ms)
    return VoteAnswer(raft.address(), granted)


def _makes_sense(raft: Raft, vote: Vote) -> bool:
    """Who asks for a vote stands in a new epoch, above all that its log has; who asks whether it would get one does not
    yet."""
    if min(vote.candidate.id, vote.last_epoch, vote.end_offset) < 0 or vote.epoch > raft.epoch_max:
        return False
    return vote.last_epoch <= vote.epoch if vote.pre_vote else vote.last_epoch < vote.epoch


def _is_meant(raft: Raft, voter: Replica) -> bool:
    """A request that names the voter it is for must not be taken by what replaced that voter."""
    return voter.id in (NO_LEADER, raft.me.id) and voter.directory_id in (NO_ID, raft.me.directory_id)


def _begin_epoch(raft: Raft, begin: BeginEpoch, now_ms: int) -> EpochAnswer:
    if begin.epoch < raft.epoch:
        return EpochAnswer(raft.address(), ErrorCode.FENCED_LEADER_EPOCH)
    if not _is_meant(raft, begin.voter):
        return EpochAnswer(raft.address(), ErrorCode.INVALID_VOTER_KEY)
    if begin.leader_id == raft.me.id or begin.leader_id < 0 or begin.epoch > raft.epoch_max:
        return EpochAnswer(raft.address(), ErrorCode.INVALID_REQUEST)
    host, port = (begin.endpoints[0].host, begin.endpoints[0].port) if begin.endpoints else ("", 0)
    raft.heed(Leader(begin.leader_id, begin.epoch, host, port), now_ms)
    if isinstance(raft.role, Prospective) and raft.leader.id == begin.leader_id:
        raft.stand_back(now_ms)
    if isinstance(raft.role, Follower) and raft.leader.id == begin.leader_id:
        raft.role.heard(raft, now_ms)
    return EpochAnswer(raft.address())


def _end_epoch(raft: Raft, end: EndEpoch, now_ms: int) -> EpochAnswer:
    if end.epoch < raft.epoch:
        return EpochAnswer(raft.address(), ErrorCode.FENCED_LEADER_EPOCH)
    if end.leader_id == raft.me.id or end.leader_id < 0 or end.epoch > raft.epoch_max:
        return EpochAnswer(raft.address(), ErrorCode.INVALID_REQUEST)
    raft.heed(Leader(end.leader_id, end.epoch), now_ms)
    if isinstance(raft.role, Follower) and raft.leader.id == end.leader_id:
        raft.role.ended(raft, [one.id for one in end.successors], now_ms)
    return EpochAnswer(raft.address())
