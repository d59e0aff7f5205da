"""The state that every handler of a group shard is given: what is stored, who is there, which timers run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.base.limits import MEMBER_ID_PREFIX_LENGTH_MAX
from penstock.base.ports import Random
from penstock.core.coordinator.result import Now
from penstock.core.coordinator.timers import Timers
from penstock.core.groups.classic import ClassicGroup
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.members import SESSION, Member
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.store import Store
from penstock.core.groups.streams.presence import Presence


class RequestContext(NamedTuple):
    """What a handler may know of the connection a request came by."""

    api_version: int
    client_id: str = ""
    client_host: str = ""
    """as Kafka prints an address: "/127.0.0.1\""""


@dataclass(slots=True)
class State:
    config: GroupConfig
    random: Random
    metadata: Metadata = field(default_factory=Metadata)
    """the topics, for groups whose partitions are assigned here"""
    asked_ms: dict[tuple[str, bytes], int] = field(default_factory=dict)
    """soft: when a share coordinator was last asked to begin a topic (by group and topic id); no answer has come yet"""
    store: Store = field(default_factory=Store)
    """durable: changed by replay alone"""
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    """soft: every group that has, or is about to have, a metadata record; simple groups once they are asked for"""
    timers: Timers = field(default_factory=Timers)
    seen_versions: dict[str, int] = field(default_factory=dict)
    """soft: up to which version of the metadata a group with server-side assignment has taken topics into account"""
    streams: dict[str, Presence] = field(default_factory=dict)
    """soft: what is not stored of streams groups"""
    is_active: bool = False
    """the log is replayed to its end"""

    def find(self, group_id: str) -> ClassicGroup | None:
        """The classic group of this id. One that has offsets only is a simple group: empty, of no protocol."""
        group = self.groups.get(group_id)
        if group is None and group_id in self.store.offsets and self.store.is_classic(group_id):
            group = self.groups[group_id] = ClassicGroup(group_id, None)
        return group

    def forget(self, group_id: str) -> None:
        """Drop the soft state of a group and its timers."""
        group = self.groups.pop(group_id, None)
        if group is None:
            return
        for member_id in (*group.members, *group.pending_join):
            self.timers.cancel((SESSION, group_id, member_id))
        self.timers.cancel(join_key(group_id))
        self.timers.cancel(sync_key(group_id))

    def expect_heartbeat(self, member: Member, now: Now, timeout_ms: int | None = None) -> None:
        """The member is alive; it has another session timeout (or this long) from now."""
        if timeout_ms is None:
            timeout_ms = member.session_timeout_ms
        self.timers.schedule(member.timer_key, now.ms + timeout_ms, member.timer_event)

    def new_member_id(self, prefix: str) -> str:
        """Kafka's form: the client's id, or the static member's, and a random UUID. Of a very long name, its start."""
        prefix = prefix[:MEMBER_ID_PREFIX_LENGTH_MAX]
        raw = bytearray(self.random.bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{prefix}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def join_key(group_id: str) -> tuple[str, str]:
    return ("join", group_id)


def sync_key(group_id: str) -> tuple[str, str]:
    return ("sync", group_id)
