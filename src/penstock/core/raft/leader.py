"""What a leader does first in its epoch, where it is the only voter."""

from __future__ import annotations

from typing import NamedTuple

from penstock.core.raft.state import QuorumState
from penstock.core.raft.voters import Voter, VoterHistory
from penstock.protocol.generated.leader_change_message import LeaderChangeMessage
from penstock.protocol.generated.leader_change_message import Voter as VoterField
from penstock.records.control import ControlType, build_control_batch


class Epoch(NamedTuple):
    state: QuorumState
    """To be on disk before the batch is written."""
    batch: bytearray
    """The first of the epoch; its offset is given by the log."""


def begin_epoch(before: QuorumState, history: VoterHistory, me: Voter, *, log_epoch: int, now_ms: int) -> Epoch:
    """The epoch after every one that was seen, in the state file or in the log.

    The voters are written where the log does not name them yet, and where this node's addresses have changed since.
    """
    number = max(before.leader_epoch, log_epoch, 0) + 1
    dynamic = history.kraft_version > 0
    state = QuorumState(me.id, number, version=1 if dynamic else 0, voters=() if dynamic else (me.id,))
    message = LeaderChangeMessage(
        leader_id=me.id, voters=[VoterField(voter_id=me.id)], granting_voters=[VoterField(voter_id=me.id)]
    )
    records = [(ControlType.LEADER_CHANGE, bytes(message.encode(0)))]
    if dynamic and (not history.in_log or history.voters != (me,)):
        history.voters, history.in_log = (me,), True
        records += history.control_records()
    return Epoch(state, build_control_batch(records, timestamp=now_ms, leader_epoch=number))
