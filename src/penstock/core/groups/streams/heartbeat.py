"""StreamsGroupHeartbeat v0: join, stay, report the tasks one has, be told which to have.

A member that is not where the group is going is asked to come back within a second, whatever the group's interval.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError, shortened
from penstock.base.limits import MEMBER_METADATA_BYTES_MAX
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups.modern.membership import JOIN_EPOCH, LEAVE_EPOCH, check_epoch
from penstock.core.groups.modern.requests import check, unknown_member
from penstock.core.groups.records import group_tombstone
from penstock.core.groups.state import RequestContext, State
from penstock.core.groups.states import GroupState
from penstock.core.groups.streams import leaving, targets
from penstock.core.groups.streams.checks import check_owned, check_request, owned_tasks
from penstock.core.groups.streams.draft import Draft
from penstock.core.groups.streams.endpoints import changes, endpoints
from penstock.core.groups.streams.group import NOT_VALIDATED, StreamsGroup, StreamsMember
from penstock.core.groups.streams.layout import Fault, Layout, Status
from penstock.core.groups.streams.reconciling import reconcile
from penstock.core.groups.streams.tasks import NO_TASKS, Tasks, write
from penstock.core.groups.streams.timing import expect, interval_ms
from penstock.core.groups.streams.topology import InternalTopic, Topology
from penstock.core.groups.streams.topology_messages import from_request
from penstock.protocol.generated import streams_group_heartbeat_response as told
from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from penstock.protocol.generated.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse


class Heartbeat(NamedTuple):
    """The answer, and the internal topics that are to be made once it is committed."""

    response: StreamsGroupHeartbeatResponse
    missing: tuple[InternalTopic, ...] = ()


def heartbeat(
    state: State, request: StreamsGroupHeartbeatRequest, context: RequestContext, ticket: int, now: Now
) -> Result:
    """`Heartbeat`."""
    check_request(request)
    if request.member_epoch == LEAVE_EPOCH:
        out = leaving.leave(state, request)
        out.response = Heartbeat(out.response)  # type: ignore[arg-type]  # what `leave` answers
        return out
    owned = owned_tasks(request)
    draft = _find_or_create(state, request)
    before = _find_member(state, draft.group, request, owned)
    asked = _updated(before or StreamsMember(request.member_id), request, context)
    turn = _Turn(state, draft, before, asked, now)
    turn.note(request)
    if turn.layout.is_ready:
        check_owned(owned, turn.layout)
    turn.assign()
    member = turn.settle(owned)
    if request.shutdown_application:
        leaving.ask_to_stop(state, draft.group, member.member_id)
    expect(state, request.group_id, before, member, now)
    return Result(Heartbeat(turn.response(request, member), turn.layout.missing), draft.records, after_writes=True)


class _Turn:
    """One heartbeat of one member."""

    def __init__(
        self, state: State, draft: Draft, before: StreamsMember | None, asked: StreamsMember, now: Now
    ) -> None:
        self.state = state
        self.draft = draft
        self.before = before
        self.asked = asked
        self.now = now
        self.was_empty = not draft.group.members
        self.layout = Layout()
        self.faults: list[Fault] = []

    def note(self, request: StreamsGroupHeartbeatRequest) -> None:
        """What the member says of itself and of the topology, and a new epoch where any of it, the topics or the
        configurations have changed."""
        draft, state, group_id = self.draft, self.state, request.group_id
        changed = self.asked != self.before
        if changed:
            draft.put_metadata(self.asked)
        topology = self._topology(request)
        _check_sizes(draft)
        survey = targets.survey(state, group_id, topology)
        self.layout, metadata_hash = survey.layout, survey.metadata_hash
        group = draft.group
        validated = topology.epoch if self.layout.is_ready else NOT_VALIDATED
        configs = targets.configs(state, group_id)
        then = group.metadata_hash, group.validated_epoch, group.configs
        if changed or (metadata_hash, validated, configs) != then:
            draft.set_epoch(group.epoch + 1, metadata_hash, validated, configs)

    def _topology(self, request: StreamsGroupHeartbeatRequest) -> Topology:
        """The group's, which the first member brings. Others may come with an older one, and are told so."""
        known = self.draft.group.topology
        asked = None if request.topology is None else from_request(request.topology)
        if known is None:
            check(asked is not None, "The group has no topology: its members have to join again.")
            assert asked is not None
            self.draft.put_topology(asked)
            return asked
        if asked is not None and asked.epoch >= known.epoch:
            check(asked == known, "Topology updates are not supported yet.")
        if self.asked.topology_epoch < known.epoch:
            said = f"The member's topology epoch {self.asked.topology_epoch} is behind the group's topology epoch"
            self.faults.append(Fault(Status.STALE_TOPOLOGY, f"{said} {known.epoch}."))
        return known

    def assign(self) -> None:
        if self.was_empty:
            targets.wait_for_more(self.state, self.draft.group.group_id, self.now)
        delayed = targets.update(self.state, self.draft, self.layout, self.now)
        if delayed is not None:
            self.faults.append(delayed)

    def settle(self, owned: Tasks | None) -> StreamsMember:
        """Take the member as far as it can go now, and store where it is."""
        group = self.draft.group
        stored = group.members[self.asked.member_id]
        target = group.targets.get(stored.member_id, NO_TASKS)
        reached = reconcile(group, stored, target, group.target_epoch, owned)
        if reached != stored:
            self.draft.put_current(reached)
        return reached

    def response(self, request: StreamsGroupHeartbeatRequest, member: StreamsMember) -> StreamsGroupHeartbeatResponse:
        """Tasks are told to who joins, and when they change."""
        state, group = self.state, self.draft.group
        soft = targets.presence(state, group.group_id)
        soft.endpoint_epoch += changes(self.before, member)
        answer = StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=interval_ms(state, group, member, self.layout.fault),
            endpoint_information_epoch=soft.endpoint_epoch,
        )
        if request.member_epoch == JOIN_EPOCH or self.before is None or self.before.assigned != member.assigned:
            answer.active_tasks = write(member.assigned.active, told.TaskIds)
            answer.standby_tasks = write(member.assigned.standby, told.TaskIds)
            answer.warmup_tasks = write(member.assigned.warmup, told.TaskIds)
        if request.endpoint_information_epoch != soft.endpoint_epoch:
            answer.partitions_by_user_endpoint = endpoints(group, state.metadata.partition_count)
        faults = self._all_faults()
        answer.status = [told.Status(status_code=one.status, status_detail=shortened(one.detail)) for one in faults]
        return answer

    def _all_faults(self) -> list[Fault]:
        faults = [*self.faults] if self.layout.fault is None else [*self.faults, self.layout.fault]
        stopper = targets.presence(self.state, self.draft.group.group_id).shutdown_by
        if stopper is not None:
            said = f"Streams group member {stopper} encountered a fatal error and requested a shutdown"
            faults.append(Fault(Status.SHUTDOWN_APPLICATION, f"{said} for the entire application."))
        return faults


def _check_sizes(draft: Draft) -> None:
    fits = all(record.size_bytes <= MEMBER_METADATA_BYTES_MAX for record in draft.records)
    check(fits, "What the member says of itself or of its topology is too large.")


def _find_or_create(state: State, request: StreamsGroupHeartbeatRequest) -> Draft:
    """The group; made by the first who joins. An empty classic one is replaced; its offsets stay."""
    group_id, joins = request.group_id, request.member_epoch == JOIN_EPOCH
    if group_id in state.store.streams or not joins:
        return Draft(leaving.found(state, group_id))
    classic = state.find(group_id)
    if not state.store.is_classic(group_id) or (classic is not None and classic.state is not GroupState.EMPTY):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    draft = Draft(StreamsGroup(group_id), is_new=True)
    if classic is not None:
        draft.records.append(group_tombstone(group_id))
    return draft


def _find_member(
    state: State, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: Tasks | None
) -> StreamsMember | None:
    """The member that the request speaks for; None where it is about to join."""
    member = group.members.get(request.member_id)
    if member is None:
        max_size = state.config.streams.max_size
        if request.member_epoch != JOIN_EPOCH:
            raise unknown_member(request.member_id, request.group_id)
        if len(group.members) >= max_size:
            said = f"The streams group has reached its maximum capacity of {max_size} members."
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, said)
    elif request.member_epoch != JOIN_EPOCH:
        within = owned is not None and owned.is_within(member.assigned)
        check_epoch(request.member_epoch, member.epoch, member.previous_epoch, owns_only_assigned=within)
    return member


def _updated(member: StreamsMember, request: StreamsGroupHeartbeatRequest, context: RequestContext) -> StreamsMember:
    """What the member says of itself now; what the request leaves out stays."""
    endpoint, tags, timeout_ms = request.user_endpoint, request.client_tags, request.rebalance_timeout_ms
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=member.endpoint if endpoint is None else (endpoint.host, endpoint.port),
        tags=member.tags if tags is None else tuple((tag.key, tag.value) for tag in tags),
    )
