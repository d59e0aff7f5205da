"""One partition's groups: every door of the group coordinator, and the replay of its records.

The handlers are functions of (state, request, ...) in the files around; this binds them to one state.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ports import Random
from penstock.core.coordinator.result import Completion, CoordinatorRecord, Now, Producer, Result
from penstock.core.coordinator.timers import Timers
from penstock.core.groups import (
    events,
    expiry,
    join,
    offsets,
    overview,
    presence,
    rebalance,
    records,
    static,
    sync,
    transactional,
)
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.consumer import heartbeat, leaving, migration, timing
from penstock.core.groups.consumer import overview as consumer_overview
from penstock.core.groups.consumer import records as consumer_records
from penstock.core.groups.consumer.events import Downgraded, JoinOverdue, SyncOverdue
from penstock.core.groups.consumer.heartbeat import HeartbeatContext
from penstock.core.groups.modern.events import MemberExpired, RevocationExpired
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.share import doors as shares
from penstock.core.groups.share.group import KIND as SHARE
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.states import GroupState
from penstock.core.groups.streams import doors as streams
from penstock.core.groups.streams.events import InitialDelayOver
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.offset_commit_request import OffsetCommitRequest
from penstock.protocol.generated.offset_delete_request import OffsetDeleteRequest
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse
from penstock.protocol.generated.txn_offset_commit_request import TxnOffsetCommitRequest


class GroupShard(shares.ShareDoors, streams.StreamsDoors):
    """A `core.coordinator.shard.Shard`. Refusals are KafkaErrors, which `refusals` turns into responses."""

    def __init__(self, config: GroupConfig, random: Random, metadata: Metadata | None = None) -> None:
        self.state = State(config, random, metadata or Metadata())

    @property
    def timers(self) -> Timers:
        return self.state.timers

    def join(self, request: JoinGroupRequest, context: RequestContext, ticket: int, now: Now) -> Result:
        return join.join(self.state, request, context, ticket, now)

    def sync(self, request: SyncGroupRequest, context: RequestContext, ticket: int, now: Now) -> Result:
        return sync.sync(self.state, request, context, ticket, now)

    def heartbeat(self, request: HeartbeatRequest, context: RequestContext, ticket: int, now: Now) -> Result:
        return presence.heartbeat(self.state, request, context, ticket, now)

    def leave(self, request: LeaveGroupRequest, context: RequestContext, ticket: int, now: Now) -> Result:
        return presence.leave(self.state, request, context, ticket, now)

    def commit_offsets(self, request: OffsetCommitRequest, context: RequestContext, ticket: int, now: Now) -> Result:
        return offsets.commit(self.state, request, context, ticket, now)

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, producer: Producer, ticket: int, now: Now
    ) -> Result:
        return transactional.commit(self.state, request, producer, ticket, now)

    def fetch_offsets(self, request: OffsetFetchRequestGroup, require_stable: bool, ticket: int, now: Now) -> Result:
        return offsets.fetch(self.state, request, require_stable, ticket, now)

    def delete_offsets(self, request: OffsetDeleteRequest, context: RequestContext, ticket: int, now: Now) -> Result:
        return offsets.delete(self.state, request, context, ticket, now)

    def describe(self, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
        return overview.describe(self.state, group_ids, context, ticket, now)

    def list_groups(self, request: ListGroupsRequest, context: RequestContext, ticket: int, now: Now) -> Result:
        return overview.list_groups(self.state, request, context, ticket, now)

    def delete_groups(self, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
        return overview.delete(self.state, group_ids, context, ticket, now)

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: HeartbeatContext, ticket: int, now: Now
    ) -> Result:
        return heartbeat.heartbeat(self.state, request, context, ticket, now)

    def describe_consumers(self, group_ids: list[str], context: RequestContext, ticket: int, now: Now) -> Result:
        return consumer_overview.describe(self.state, group_ids, context, ticket, now)

    def forget_topics(self, topics: list[tuple[str, bytes]], context: None, ticket: int, now: Now) -> Result:
        """Topics were deleted (name, id): their offsets go too."""
        out = expiry.forget_topics(self.state, topics)
        out.records += shares.forget_topics(self.state, [topic_id for _, topic_id in topics])
        return out

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        kind = self.state.store.replay(record, offset, producer_id)
        if kind == records.GROUP_METADATA:
            self._classic_replayed(records.read_group_key(record.key), gone=record.value is None)
        elif kind == consumer_records.GROUP and record.value is None:
            self.state.seen_versions.pop(records.read_foreign_group_id(record.key), None)
        elif kind == records.STREAMS_GROUP and record.value is None:
            self.state.streams.pop(records.read_foreign_group_id(record.key), None)

    def _classic_replayed(self, group_id: str, *, gone: bool) -> None:
        """The members' view follows the log: a deleted group is forgotten, and one that was a consumer group until now
        is there for its next request."""
        state = self.state
        if gone:
            state.forget(group_id)
        elif state.is_active and group_id not in state.groups:
            state.groups[group_id] = ClassicGroup.restore(group_id, state.store.groups[group_id])

    def replay_end_transaction(self, producer_id: int, committed: bool) -> None:
        self.state.store.end_transaction(producer_id, committed)

    def loaded(self, now: Now) -> Result:
        """Every member of a stored generation gets a session timeout to be heard of."""
        state, out = self.state, Result()
        state.is_active = True
        for consumers in state.store.consumers.values():
            timing.expect_everybody(state, consumers, now)
        for group_id, value in state.store.groups.items():
            group = state.groups[group_id] = ClassicGroup.restore(group_id, value)
            for member in group.members.values():
                state.expect_heartbeat(member, now)
            if len(group.members) > state.config.max_size:
                rebalance.prepare(state, group, now, out)
        shares.expect_everybody(state, now)
        streams.expect_everybody(state, now)
        expiry.schedule(state, now)
        return out

    def unloaded(self) -> list[Completion]:
        out = Result()
        moved = ErrorCode.NOT_COORDINATOR
        for group in self.state.groups.values():
            for member in group.members.values():
                if member.awaiting_join:
                    response = JoinGroupResponse(error_code=moved, member_id=member.member_id)
                    out.complete(group.take_awaiting_join(member), response)
                if member.awaiting_sync:
                    out.complete(member.awaiting_sync, SyncGroupResponse(error_code=moved))
                    member.awaiting_sync = 0
        return out.completions

    def fire(self, event: object, now: Now) -> Result:
        state, out = self.state, Result()
        match event:
            case events.SessionExpired():
                rebalance.on_session_expired(state, event, now, out)
            case events.JoinExpired():
                rebalance.on_join_expired(state, event, now, out)
            case events.InitialDelayExpired():
                rebalance.on_initial_delay_expired(state, event, now, out)
            case events.SyncExpired():
                rebalance.on_sync_expired(state, event, now, out)
            case MemberExpired(kind=timing.KIND) | RevocationExpired(kind=timing.KIND) | JoinOverdue() | SyncOverdue():
                return leaving.on_overdue(state, event, now)
            case MemberExpired() if event.kind == SHARE:
                return shares.on_expired(state, event)
            case MemberExpired(kind=streams.KIND) | RevocationExpired(kind=streams.KIND) | InitialDelayOver():
                return streams.on_event(state, event, now)
            case events.RetentionDue():
                return expiry.expire(state, now)
            case _:
                raise AssertionError(f"no timer says {event!r}")
        return out

    def settled(self, then: object, error: ErrorCode | None, now: Now) -> Result:
        match then:
            case events.AssignmentStored():
                return sync.assignment_stored(self.state, then, error, now)
            case events.StaticMemberStored():
                return static.member_stored(self.state, then, error, now)
            case Downgraded():
                return migration.downgraded(self.state, then, error, now)
            case events.GroupCreated():
                return join.group_created(self.state, then, error)
            case _:
                raise AssertionError(f"nobody wrote {then!r}")

    def check(self) -> None:
        """What holds between events, the store and the members' view included."""
        for group in self.state.groups.values():
            group.check()
            if group.state is GroupState.STABLE and not group.awaiting_join_count:
                stored = self.state.store.groups[group.group_id]
                assert stored.generation == group.generation and stored.leader == group.leader
                assert {m.member_id: m.assignment for m in stored.members} == {
                    m.member_id: m.assignment for m in group.members.values()
                }, "what is stored is what the members were told"
        for consumers in self.state.store.consumers.values():
            consumers.check()
        for share_group in self.state.store.shares.values():
            share_group.check()
        for streams_group in self.state.store.streams.values():
            streams_group.check()
        self.state.timers.check()
