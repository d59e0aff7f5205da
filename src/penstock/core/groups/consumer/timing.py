"""How long a member of a consumer group may be silent, or hold on to what it has to give up."""

from __future__ import annotations

from penstock.core.coordinator.result import Now
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.modern import timing
from penstock.core.groups.modern.settings import number
from penstock.core.groups.state import State

KIND = "consumer"


def expect_heartbeat(state: State, group_id: str, member: ConsumerMember, now: Now) -> None:
    """The member is alive; it has another session timeout from now."""
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    else:
        timeout_ms = number(state.metadata.image, group_id, state.config.consumer.session_timeout)
    timing.expect_member(state.timers, KIND, group_id, member.member_id, now.ms + timeout_ms)


def expect_revocation(
    state: State, group_id: str, before: ConsumerMember | None, member: ConsumerMember, now: Now
) -> None:
    timing.expect_revocation(state.timers, KIND, group_id, before, member, now)


def heartbeat_interval_ms(state: State, group: ConsumerGroup, member: ConsumerMember) -> int:
    interval_ms = number(state.metadata.image, group.group_id, state.config.consumer.heartbeat_interval)
    settled = member.is_reconciled_to(group.epoch)
    return interval_ms if settled else min(interval_ms, timing.UNSETTLED_INTERVAL_MS)


def expect_everybody(state: State, group: ConsumerGroup, now: Now) -> None:
    """The log is loaded: every member has a session timeout to be heard of, as if it had just been."""
    for member in group.members.values():
        expect_heartbeat(state, group.group_id, member, now)
        if not member.uses_classic_protocol:
            expect_revocation(state, group.group_id, None, member, now)
