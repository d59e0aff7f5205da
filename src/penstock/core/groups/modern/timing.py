"""How long a member may be silent, or hold on to what it has to give up; and how often a target is computed."""

from __future__ import annotations

from typing import Protocol

from penstock.core.coordinator.result import Now
from penstock.core.coordinator.timers import Timers
from penstock.core.groups.modern.events import MemberExpired, RevocationExpired, revocation_key, session_key
from penstock.core.groups.modern.membership import MemberState

UNSETTLED_INTERVAL_MS = 1_000
"""a member whose assignment is about to change is asked to come back this soon"""


class MovingMember(Protocol):
    @property
    def member_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def state(self) -> MemberState: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def revoking(self) -> object: ...


def expect_member(timers: Timers, kind: str, group_id: str, member_id: str, deadline_ms: int) -> None:
    """The member is alive, and is to be heard of again by then."""
    event = MemberExpired(kind, group_id, member_id)
    timers.schedule(session_key(kind, group_id, member_id), deadline_ms, event)


def expect_revocation(
    timers: Timers, kind: str, group_id: str, before: MovingMember | None, member: MovingMember, now: Now
) -> None:
    """From the moment it is told to give something up, a member has its rebalance timeout for it. `before`: the member
    until now, None where it is not known; what it was told to give up then has its time running."""
    key = revocation_key(kind, group_id, member.member_id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        timers.cancel(key)
    elif key not in timers or before is None or _gives_up(before) != _gives_up(member):
        event = RevocationExpired(kind, group_id, member.member_id, member.epoch)
        timers.schedule(key, now.ms + member.rebalance_timeout_ms, event)


def _gives_up(member: MovingMember) -> tuple[int, object]:
    return member.epoch, member.revoking


def forget_member(timers: Timers, kind: str, group_id: str, member_id: str) -> None:
    timers.cancel(session_key(kind, group_id, member_id))
    timers.cancel(revocation_key(kind, group_id, member_id))


def is_too_early(computed_wall_ms: int, interval_ms: int, now: Now) -> bool:
    """Whether the last target is younger than the interval; a clock that was set back does not count."""
    return 0 <= now.wall_ms - computed_wall_ms < interval_ms
