"""What a coordinator offers to its runtime: replay, and what happens at the edges of its life."""

from __future__ import annotations

from typing import Protocol

from penstock.base.errors import ErrorCode
from penstock.core.coordinator.result import Completion, CoordinatorRecord, Now, Result
from penstock.core.coordinator.timers import Timers


class Shard(Protocol):
    """One partition's share of a coordinator.

    Its request handlers are called by `Runtime.submit` as `handler(request, context, ticket, now) -> Result`; they
    read all state, change soft state (timers, who waits), leave durable state to `replay`, and refuse by KafkaError.
    """

    @property
    def timers(self) -> Timers: ...

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Apply a record that is in the log. `producer_id` is -1 outside transactions. A tombstone for something
        unknown is a no-op: compaction may have removed what it referred to."""

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        """A marker ends the producer's open transaction in this partition."""

    def loaded(self, now: Now) -> Result:
        """The log has been replayed to its end: rebuild soft state, arm timers."""

    def unloaded(self) -> list[Completion]:
        """Somebody else coordinates from now on: the answers to everybody who still waits."""

    def fire(self, event: object, now: Now) -> Result:
        """A timer's event is due."""

    def settled(self, then: object, error: ErrorCode | None, now: Now) -> Result:
        """The records of the result that carried `then` are committed; or, with an error, they are not."""
