"""What the timers of groups with server-side assignment say, and the keys they are armed under."""

from __future__ import annotations

from typing import NamedTuple


class MemberExpired(NamedTuple):
    """No heartbeat for a session timeout."""

    kind: str
    """the type of the group: consumer, share"""
    group_id: str
    member_id: str


class RevocationExpired(NamedTuple):
    """The member was to give up partitions within its rebalance timeout, and has not."""

    kind: str
    group_id: str
    member_id: str
    member_epoch: int


def session_key(kind: str, group_id: str, member_id: str) -> tuple[str, str, str, str]:
    return ("modern-session", kind, group_id, member_id)


def revocation_key(kind: str, group_id: str, member_id: str) -> tuple[str, str, str, str]:
    return ("modern-revocation", kind, group_id, member_id)
