"""A classic group becomes a consumer group when the first member of the consumer protocol joins, and a classic one
again when the last of them has left; nobody has to stop for it. `group.consumer.migration.policy` says which of both.

Members of the classic protocol keep their ids and what they have: the generation becomes the group epoch and theirs.
"""

from __future__ import annotations

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.groups import rebalance
from penstock.core.groups.classic import CONSUMER_PROTOCOL, ClassicGroup
from penstock.core.groups.consumer import embedded, records
from penstock.core.groups.consumer.draft import Draft
from penstock.core.groups.consumer.events import Downgraded
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ClassicSide, ConsumerMember, plain
from penstock.core.groups.consumer.timing import expect_heartbeat
from penstock.core.groups.members import Member
from penstock.core.groups.records import group_record, group_tombstone
from penstock.core.groups.state import State
from penstock.core.groups.states import GroupState
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.sync_group_response import SyncGroupResponse

UPGRADES = ("upgrade", "bidirectional")
DOWNGRADES = ("downgrade", "bidirectional")


def upgrade(state: State, classic: ClassicGroup, now: Now, out: Result) -> Draft:
    """The classic group as a draft of a consumer group. An empty one is simply replaced; its offsets stay."""
    if classic.state is not GroupState.EMPTY:
        _check_upgrade(state, classic)
    draft = Draft(ConsumerGroup(classic.group_id), is_new=True)
    draft.records.append(group_tombstone(classic.group_id))
    if classic.state is GroupState.EMPTY:
        return draft
    try:
        members = [_upgraded(state, classic, member) for member in classic.members.values()]
    except DecodeError as error:
        raise _not_upgraded(classic, f"a member's metadata cannot be read: {error}") from None
    group = draft.group
    for member in members:
        draft.put_subscription(member)
    draft.set_epoch(classic.generation, state.metadata.hash(group.subscribed_topics()))
    for member in members:
        draft.put_target(member.member_id, plain(member.assigned))
    draft.set_target_epoch(classic.generation, wall_ms=0)
    for member in members:
        draft.put_current(member)
        expect_heartbeat(state, classic.group_id, member, now)
    _answer_everybody(classic, out)
    return draft


def _check_upgrade(state: State, classic: ClassicGroup) -> None:
    if state.config.consumer.migration_policy not in UPGRADES:
        raise _not_upgraded(classic, "the online upgrade is disabled")
    if not classic.uses_consumer_protocol:
        raise _not_upgraded(classic, "it does not use the consumer embedded protocol")
    if len(classic.members) > state.config.consumer.max_size:
        raise _not_upgraded(classic, "it has more members than a consumer group may have")


def _not_upgraded(classic: ClassicGroup, why: str) -> KafkaError:
    said = f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}."
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, said)


def _upgraded(state: State, classic: ClassicGroup, member: Member) -> ConsumerMember:
    subscription = embedded.read_subscription(next(iter(member.protocols.values())))
    assignment = embedded.read_assignment(member.assignment, state.metadata)
    given = {topic_id: dict.fromkeys(ats, classic.generation) for topic_id, ats in assignment.items()}
    return ConsumerMember(
        member.member_id,
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicSide(member.session_timeout_ms, tuple(member.protocols.items())),
        epoch=classic.generation,
        previous_epoch=classic.generation,
        assigned=given,
    )


def _answer_everybody(classic: ClassicGroup, out: Result) -> None:
    """Who waits for a generation that will not come is to ask again."""
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic.members.values():
        if ticket := classic.take_awaiting_join(member):
            out.complete(ticket, JoinGroupResponse(error_code=again, member_id=member.member_id))
        if member.awaiting_sync:
            out.complete(member.awaiting_sync, SyncGroupResponse(error_code=again))
            member.awaiting_sync = 0


def may_downgrade(state: State, left: ConsumerGroup) -> bool:
    """`left`: the group as it would be. There must be somebody in it, and a protocol that all of them have."""
    if state.config.consumer.migration_policy not in DOWNGRADES or not left.members:
        return False
    members = left.members.values()
    if len(members) > state.config.max_size or not all(member.uses_classic_protocol for member in members):
        return False
    common = embedded.common_protocols(members)
    return bool(common)


def downgrade(state: State, stored: ConsumerGroup, left: ConsumerGroup, now: Now) -> Result:
    """Tombstones for the consumer group, and the classic group in its place."""
    classic = ClassicGroup(left.group_id, now.wall_ms)
    classic.generation = left.epoch
    assignments: dict[str, bytes] = {}
    for member in left.members.values():
        assert member.classic is not None
        protocols = dict(member.classic.protocols)
        classic.add(
            Member(
                member.member_id,
                left.group_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                protocols,
            ),
            CONSUMER_PROTOCOL,
        )
        version = embedded.version(next(iter(protocols.values())))
        assignments[member.member_id] = embedded.write_assignment(plain(member.assigned), version, state.metadata)
    classic.protocol_name = classic.select_protocol()
    written = group_record(left.group_id, classic.stored_value(assignments))
    return Result(records=[*records.group_tombstones(stored), written], then=Downgraded(left.group_id))


def downgraded(state: State, event: Downgraded, error: ErrorCode | None, now: Now) -> Result:
    """Everybody is to join the classic group. If the write was not confirmed in time it is in the log all the same;
    if it failed there is a consumer group still."""
    out = Result()
    group = state.groups.get(event.group_id)
    if group is None or event.group_id in state.store.consumers:
        return out
    for member in group.members.values():
        state.expect_heartbeat(member, now)
    if group.state is GroupState.STABLE:
        rebalance.prepare(state, group, now, out)
    return out
