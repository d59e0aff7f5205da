"""What a group shard answers about streams groups: each door bound to one state.

What stands behind the doors is loaded by the first who goes through one: most brokers start without.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.modern.events import MemberExpired, RevocationExpired
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.streams.events import InitialDelayOver
from penstock.core.groups.streams.group import KIND

if TYPE_CHECKING:
    from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest

__all__ = ["KIND", "StreamsDoors", "expect_everybody", "on_event"]

Event = MemberExpired | RevocationExpired | InitialDelayOver


class StreamsDoors:
    state: State

    def streams_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, context: RequestContext, ticket: int, now: Now
    ) -> Result:
        from penstock.core.groups.streams import heartbeat

        return heartbeat.heartbeat(self.state, request, context, ticket, now)

    def describe_streams(self, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
        from penstock.core.groups.streams import overview

        return overview.describe(self.state, group_ids, context, ticket, now)


def on_event(state: State, event: Event, now: Now) -> Result:
    from penstock.core.groups.streams import leaving, targets

    if isinstance(event, InitialDelayOver):
        return targets.on_delay_over(state, event, now)
    return leaving.on_overdue(state, event)


def expect_everybody(state: State, now: Now) -> None:
    if state.store.streams:
        from penstock.core.groups.streams import timing

        timing.expect_everybody(state, now)
