"""Whether, when and after what a refused request is worth another try: decisions as values."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.errors import RETRIABLE, ErrorCode, KafkaError

METADATA_STALE: frozenset[ErrorCode] = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""What we believe about leaders or topics may be out of date."""

COORDINATOR_STALE: frozenset[ErrorCode] = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""The coordinator may be another node by now."""


@dataclass(frozen=True, slots=True)
class Retry:
    after_ms: int
    refresh_metadata: bool
    find_coordinator: bool


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubles from `first_ms` to `last_ms`; the shell spreads each pause by chance."""

    first_ms: int = 100
    last_ms: int = 1_000

    def after_ms(self, attempt: int) -> int:
        """The pause after the `attempt`-th failure, counted from 0."""
        return min(self.last_ms, self.first_ms << min(attempt, 16))

    def decide(self, error: KafkaError, attempt: int) -> Retry | None:
        """What to do about this failure; None: it is final, tell the caller."""
        if error.code not in RETRIABLE:
            return None
        return Retry(
            after_ms=self.after_ms(attempt),
            refresh_metadata=error.code in METADATA_STALE,
            find_coordinator=error.code in COORDINATOR_STALE,
        )


BACKOFF = Backoff()
