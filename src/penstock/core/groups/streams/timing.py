"""How long a member of a streams group may be silent, and how soon it is to come back."""

from __future__ import annotations

from penstock.core.coordinator.result import Now
from penstock.core.groups.modern import timing
from penstock.core.groups.modern.settings import number
from penstock.core.groups.state import State
from penstock.core.groups.streams.group import KIND, StreamsGroup, StreamsMember
from penstock.core.groups.streams.layout import Fault, Status

_SOON_TO_PASS = (None, Status.MISSING_INTERNAL_TOPICS)


def expect(state: State, group_id: str, before: StreamsMember | None, member: StreamsMember, now: Now) -> None:
    """The member is alive: it has another session timeout from now, and the rebalance timeout where it is to give up
    tasks. `before`: the member until now, None where it is not known."""
    timeout_ms = number(state.metadata.image, group_id, state.config.streams.session_timeout)
    timing.expect_member(state.timers, KIND, group_id, member.member_id, now.ms + timeout_ms)
    timing.expect_revocation(state.timers, KIND, group_id, before, member, now)


def expect_everybody(state: State, now: Now) -> None:
    """The log is loaded: every member has a session timeout to be heard of, as if it had just been."""
    for group in state.store.streams.values():
        for member in group.members.values():
            expect(state, group.group_id, None, member, now)


def interval_ms(state: State, group: StreamsGroup, member: StreamsMember, fault: Fault | None) -> int:
    """Soon again, where there will be more to tell. Not so where an operator has to do something first: a member gives
    up when source topics are missing for two intervals."""
    usual_ms = number(state.metadata.image, group.group_id, state.config.streams.heartbeat_interval)
    passes = (None if fault is None else fault.status) in _SOON_TO_PASS
    settled = fault is None and member.is_reconciled_to(group.epoch)
    return min(usual_ms, timing.UNSETTLED_INTERVAL_MS) if passes and not settled else usual_ms
