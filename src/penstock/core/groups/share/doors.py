"""What a group shard answers about share groups: each door bound to one state.

What stands behind the doors is loaded by the first who goes through one: most brokers start without.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core.coordinator.result import CoordinatorRecord, Now, Result
from penstock.core.groups.modern.events import MemberExpired
from penstock.core.groups.state import RequestContext, State

if TYPE_CHECKING:
    from penstock.core.groups.share.offsets import Deleted
    from penstock.core.groups.share.partitions import Initialization
    from penstock.protocol.generated.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
    from penstock.protocol.generated.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
    from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest


class ShareDoors:
    state: State

    def share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, context: RequestContext, ticket: int, now: Now
    ) -> Result:
        from penstock.core.groups.share import heartbeat

        return heartbeat.heartbeat(self.state, request, context, ticket, now)

    def describe_shares(self, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
        from penstock.core.groups.share import overview

        return overview.describe(self.state, group_ids, context, ticket, now)

    def share_initialized(self, done: Initialization, context: None, ticket: int, now: Now) -> Result:
        from penstock.core.groups.share import partitions

        return partitions.initialized(self.state, done, context, ticket, now)

    def share_not_initialized(self, tried: Initialization, context: None, ticket: int, now: Now) -> Result:
        from penstock.core.groups.share import partitions

        return partitions.failed(self.state, tried, context, ticket, now)

    def share_partitions(self, group_id: str, context: None, ticket: int, now: Now) -> Result:
        from penstock.core.groups.share import offsets

        return offsets.begun_partitions(self.state, group_id, context, ticket, now)

    def alter_share_offsets(
        self, request: AlterShareGroupOffsetsRequest, context: None, ticket: int, now: Now
    ) -> Result:
        from penstock.core.groups.share import offsets

        return offsets.alter(self.state, request, context, ticket, now)

    def delete_share_offsets(
        self, request: DeleteShareGroupOffsetsRequest, context: None, ticket: int, now: Now
    ) -> Result:
        from penstock.core.groups.share import offsets

        return offsets.delete(self.state, request, context, ticket, now)

    def delete_share_group(self, group_id: str, context: None, ticket: int, now: Now) -> Result:
        from penstock.core.groups.share import offsets

        return offsets.delete_group(self.state, group_id, context, ticket, now)

    def share_deleted(self, done: Deleted, context: None, ticket: int, now: Now) -> Result:
        from penstock.core.groups.share import offsets

        return offsets.deleted(self.state, done, context, ticket, now)


def on_expired(state: State, event: MemberExpired) -> Result:
    from penstock.core.groups.share import heartbeat

    return heartbeat.on_expired(state, event)


def expect_everybody(state: State, now: Now) -> None:
    if state.store.shares:
        from penstock.core.groups.share import heartbeat

        heartbeat.expect_everybody(state, now)


def forget_topics(state: State, topic_ids: list[bytes]) -> list[CoordinatorRecord]:
    if not state.store.shares:
        return []
    from penstock.core.groups.share import partitions

    return partitions.forget_topics(state, topic_ids)
