"""What the nodes of a quorum say to each other: Kafka's RPCs of one partition, without their envelopes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.errors import ErrorCode
from penstock.base.ports import Buffer
from penstock.core.raft.snapshot import SnapshotId
from penstock.core.raft.voters import Replica, Voter, VoterEndpoint

NO_LEADER = -1
UNTOLD_EPOCH = -1
"""of an answer that does not say who leads which epoch"""
NO_WATERMARK = -1
ANY_WATERMARK = 2**63 - 1
"""of a follower that does not tell which watermark it knows"""


@dataclass(frozen=True, slots=True)
class Leader:
    """Whom the answering node takes for the leader of which epoch."""

    id: int
    epoch: int
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class Vote:
    epoch: int
    """A pre-vote asks in the epoch that its sender is in, a vote in the one that it wants to lead."""
    candidate: Replica
    voter: Replica
    last_epoch: int
    end_offset: int
    pre_vote: bool


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    leader: Leader
    granted: bool = False
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...]
    voter: Replica


@dataclass(frozen=True, slots=True)
class EndEpoch:
    epoch: int
    leader_id: int
    endpoints: tuple[VoterEndpoint, ...]
    successors: tuple[Replica, ...]
    """Best first."""


@dataclass(frozen=True, slots=True)
class EpochAnswer:
    """To BeginEpoch and EndEpoch."""

    leader: Leader
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class Fetch:
    epoch: int
    replica: Replica
    offset: int
    """Where the replica's log ends. Everything below is durable there: the leader counts on it."""
    last_epoch: int
    high_watermark: int = ANY_WATERMARK
    max_bytes: int = 1_048_576
    max_wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    leader: Leader
    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = NO_WATERMARK
    start_offset: int = -1
    diverging: tuple[int, int] | None = None
    """(epoch, end offset): how far the leader's log can agree with the replica's."""
    snapshot: SnapshotId | None = None
    """What the replica needs is gone from the log: it begins with this."""
    records: Buffer = b""


@dataclass(frozen=True, slots=True)
class FetchSnapshot:
    epoch: int
    replica: Replica
    snapshot: SnapshotId
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class SnapshotAnswer:
    leader: Leader
    snapshot: SnapshotId
    error: ErrorCode = ErrorCode.NONE
    size: int = 0
    position: int = 0
    data: Buffer = b""


@dataclass(frozen=True, slots=True)
class AddVoter:
    voter: Voter
    timeout_ms: int
    when_committed: bool = True
    """Answer once the change is committed; else as soon as it is in the leader's log."""


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    replica: Replica
    timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class UpdateVoter:
    epoch: int
    voter: Voter


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """To AddVoter, RemoveVoter and UpdateVoter."""

    leader: Leader
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


Request = Vote | BeginEpoch | EndEpoch | Fetch | FetchSnapshot | AddVoter | RemoveVoter | UpdateVoter
Answer = VoteAnswer | EpochAnswer | FetchAnswer | SnapshotAnswer | ChangeAnswer


@dataclass(frozen=True, slots=True)
class Received:
    """Event: a request came in. `token` names it in the answer, which may come later."""

    token: int
    request: Request


@dataclass(frozen=True, slots=True)
class Answered:
    """Event: the request that was sent under `correlation` has been answered."""

    correlation: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """Event: no answer will come. `refused`: nobody is listening there, the connection was closed, or the node says
    that it takes part no more."""

    correlation: int
    refused: bool


Event = Received | Answered | Failed


@dataclass(frozen=True, slots=True)
class Send:
    """Effect: a request to a peer, a voter's id or a negative number that stands for a bootstrap server."""

    peer: int
    correlation: int
    request: Request
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Effect: the answer to what came in under `token`."""

    token: int
    answer: Answer
