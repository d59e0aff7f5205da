"""How long a member of a consumer group may be silent, or hold on to what it has to give up."""

from __future__ import annotations

from penstock.core.coordinator.result import Now
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember, Owned
from penstock.core.groups.modern.events import MemberExpired, RevocationExpired, revocation_key, session_key
from penstock.core.groups.modern.membership import MemberState
from penstock.core.groups.modern.settings import number
from penstock.core.groups.state import State

KIND = "consumer"
UNSETTLED_INTERVAL_MS = 1_000
"""a member whose assignment is about to change is asked to come back this soon"""


def expect_heartbeat(state: State, group_id: str, member: ConsumerMember, now: Now) -> None:
    """The member is alive; it has another session timeout from now."""
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    else:
        timeout_ms = number(state.metadata.image, group_id, state.config.consumer.session_timeout)
    key = session_key(KIND, group_id, member.member_id)
    state.timers.schedule(key, now.ms + timeout_ms, MemberExpired(KIND, group_id, member.member_id))


def expect_revocation(
    state: State, group_id: str, before: ConsumerMember | None, member: ConsumerMember, now: Now
) -> None:
    """From the moment it is told to give something up, a member has its rebalance timeout for it. `before`: the member
    until now, None where it is not known; what it was told to give up then has its time running."""
    key = revocation_key(KIND, group_id, member.member_id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        state.timers.cancel(key)
    elif key not in state.timers or before is None or _gives_up(before) != _gives_up(member):
        event = RevocationExpired(KIND, group_id, member.member_id, member.epoch)
        state.timers.schedule(key, now.ms + member.rebalance_timeout_ms, event)


def _gives_up(member: ConsumerMember) -> tuple[int, Owned]:
    return member.epoch, member.revoking


def heartbeat_interval_ms(state: State, group: ConsumerGroup, member: ConsumerMember) -> int:
    interval_ms = number(state.metadata.image, group.group_id, state.config.consumer.heartbeat_interval)
    settled = member.is_reconciled_to(group.epoch)
    return interval_ms if settled else min(interval_ms, UNSETTLED_INTERVAL_MS)


def expect_everybody(state: State, group: ConsumerGroup, now: Now) -> None:
    """The log is loaded: every member has a session timeout to be heard of, as if it had just been."""
    for member in group.members.values():
        expect_heartbeat(state, group.group_id, member, now)
        if not member.uses_classic_protocol:
            expect_revocation(state, group.group_id, None, member, now)
