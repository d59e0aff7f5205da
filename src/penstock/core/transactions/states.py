"""The states of a transactional id, by the numbers and names that Kafka stores and tells, and the legal steps."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """expired: what a tombstone leads to"""
    PREPARE_EPOCH_FENCE = 7
    """about to be aborted with the next epoch; never stored: the step to it and the one from it are one record"""

    @property
    def label(self) -> str:
        """As tools show it: PrepareCommit."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        return self in (Status.PREPARE_COMMIT, Status.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """No transaction is open: the next may begin, or the id may expire."""
        return self in (Status.EMPTY, Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)


LEGAL: dict[Status, frozenset[Status]] = {
    Status.EMPTY: frozenset({Status.EMPTY, Status.ONGOING, Status.PREPARE_ABORT, Status.DEAD}),
    Status.ONGOING: frozenset(
        {Status.ONGOING, Status.PREPARE_COMMIT, Status.PREPARE_ABORT, Status.PREPARE_EPOCH_FENCE}
    ),
    Status.PREPARE_COMMIT: frozenset({Status.COMPLETE_COMMIT}),
    Status.PREPARE_ABORT: frozenset({Status.COMPLETE_ABORT}),
    Status.COMPLETE_COMMIT: frozenset({Status.EMPTY, Status.ONGOING, Status.PREPARE_ABORT, Status.DEAD}),
    Status.COMPLETE_ABORT: frozenset({Status.EMPTY, Status.ONGOING, Status.PREPARE_ABORT, Status.DEAD}),
    Status.PREPARE_EPOCH_FENCE: frozenset({Status.PREPARE_ABORT}),
    Status.DEAD: frozenset(),
}
"""From an idle state to PREPARE_ABORT: with version 2 a producer may abort what never reached a partition."""

LABELS = {status.label: status for status in Status}
