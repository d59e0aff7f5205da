"""What the timers of classic members inside a consumer group say, and what it wants to hear about its own writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class JoinOverdue(NamedTuple):
    """The member was told to join again and has not, within its rebalance timeout."""

    group_id: str
    member_id: str


class SyncOverdue(NamedTuple):
    """The member has joined and did not ask for its assignment, within its rebalance timeout."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class Downgraded:
    """A write: the group is a classic one now."""

    group_id: str


def join_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("consumer-join", group_id, member_id)


def sync_key(group_id: str, member_id: str) -> tuple[str, str, str]:
    return ("consumer-sync", group_id, member_id)
