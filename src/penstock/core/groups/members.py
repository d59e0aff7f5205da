"""One member of a classic group, and what it subscribes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.base.errors import DecodeError
from penstock.core.groups.events import SessionExpired
from penstock.protocol.codec import Reader
from penstock.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription

SESSION = "session"


@dataclass(slots=True)
class Member:
    member_id: str
    group_id: str
    instance_id: str | None
    """`group.instance.id` of a static member"""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: dict[str, bytes]
    """name -> metadata, in the member's order of preference"""
    assignment: bytes = b""
    awaiting_join: int = 0
    """ticket of the JoinGroup that waits for a generation; 0: none"""
    awaiting_sync: int = 0
    """ticket of the SyncGroup that waits for an assignment; 0: none"""
    is_new: bool = False
    """has never been in a generation, so it cannot heartbeat yet"""
    timer_key: tuple[str, str, str] = field(init=False)
    timer_event: SessionExpired = field(init=False)

    def __post_init__(self) -> None:
        self.timer_key = (SESSION, self.group_id, self.member_id)
        self.timer_event = SessionExpired(self.group_id, self.member_id)

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Who waits for the coordinator is not expected to heartbeat; a new member may be given up even so."""
        return not self.is_new and bool(self.awaiting_join or self.awaiting_sync)

    def matches(self, protocols: dict[str, bytes]) -> bool:
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: dict[str, None]) -> str:
        return next(name for name in self.protocols if name in candidates)


def subscribed_topics(metadata: list[bytes]) -> frozenset[str] | None:
    """The topics that consumers with this metadata subscribe to; None where one of them cannot be read.

    Version 0 is a prefix of every version of the consumer protocol, so newer clients are understood as well.
    """
    topics: set[str] = set()
    for each in metadata:
        try:
            reader = Reader(each)
            reader.int16()
            topics.update(ConsumerProtocolSubscription.read(reader, 0).topics)
        except DecodeError:
            return None
    return frozenset(topics)
