"""Changes of the in-sync replicas as values: what a leader asks of the controller, and what the controller answers."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.errors import ErrorCode

EPOCH_UNCHECKED = -1
"""a broker epoch that the controller does not compare: the member has not fetched from this leader yet"""


@dataclass(frozen=True, slots=True)
class IsrChange:
    """One partition's part of an AlterPartition request."""

    topic_id: bytes
    index: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """(broker id, broker epoch) of each member that is to be"""
    leader_recovery_state: int

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id, _ in self.isr)


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """One partition's part of the answer; where there is no error, the partition as the controller has it now."""

    error: ErrorCode
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0


NOT_APPLIED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller says that our partition epoch is right and that nothing was changed: the change may be forgotten."""

AWAIT_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""We are behind the controller. Whether an earlier try was applied is not known: the change stays pending, and so the
maximal ISR as large as it may be, until the metadata say."""
