"""One member of a consumer group, as the log has it: two records, what it asked for and what it has.

Members are values: a change makes a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.core.groups.modern.assignment import Assignment
from penstock.core.groups.modern.membership import MemberState

Owned = dict[bytes, dict[int, int]]
"""topic id -> partition -> the member epoch in which it was given; no empty dict inside; never changed in place"""


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """What a member that speaks the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """name and metadata, in the member's order of preference"""


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    instance_id: str | None = None
    """`group.instance.id` of a static member"""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """subscribed by name; sorted"""
    regex: str | None = None
    """subscribed by a regular expression; never empty"""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicSide | None = None
    """None: it speaks the consumer protocol"""
    epoch: int = 0
    """-2: a static member that is away"""
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    """told to give up, not yet known to have done so: still its own"""

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None


def plain(owned: Owned) -> Assignment:
    """Without the epochs."""
    return {topic_id: sorted(partitions) for topic_id, partitions in owned.items()}
