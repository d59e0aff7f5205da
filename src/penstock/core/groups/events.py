"""What a group shard's timers say when they fire, and what it wants to hear about its own writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class SessionExpired(NamedTuple):
    """No heartbeat for a session timeout; or a new or pending member that waited too long."""

    group_id: str
    member_id: str


class JoinExpired(NamedTuple):
    """The rebalance timeout is over: go on with those who joined."""

    group_id: str


class InitialDelayExpired(NamedTuple):
    """A new group has waited `delay_ms` for further members and may wait `remaining_ms` more."""

    group_id: str
    delay_ms: int
    remaining_ms: int


class SyncExpired(NamedTuple):
    """The rebalance timeout is over a second time: without those who did not ask for their assignment."""

    group_id: str
    generation: int


class RetentionDue(NamedTuple):
    """Time to look for offsets that have expired."""


@dataclass(frozen=True, slots=True)
class GroupCreated:
    """A write: the first record of a new group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """A write: the leader's assignment."""

    group_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class StaticMemberStored:
    """A write: a static member came back under a new id while its group was stable."""

    group_id: str
    instance_id: str
    old_member_id: str
    new_member_id: str
    old_leader: str | None
    old_protocols: dict[str, bytes]
    old_rebalance_timeout_ms: int
    old_session_timeout_ms: int
    api_version: int
