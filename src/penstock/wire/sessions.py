"""Fetch sessions (KIP-227): name to a broker only what changed since the last request, and keep both sides in step.

Epoch 0 asks for a new session and names everything; then each request counts on by one and names what is new, moved or
gone. Without a session every request names everything (id 0, epoch -1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.base.errors import ErrorCode
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

NO_SESSION = 0
FIRST_EPOCH = 0
SESSIONLESS_EPOCH = -1
EPOCH_MAX = 2**31 - 1

SESSION_LOST = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class Wanted(NamedTuple):
    """What a fetch says about one partition."""

    topic_id: bytes
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int


class FetchLimits(NamedTuple):
    """What a fetch says about all of them."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    isolation: int = 0
    rack: str = ""


class FetchSession:
    """Our side of the session with one broker."""

    def __init__(self, enabled: bool = True) -> None:
        self._enabled = enabled
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH if enabled else SESSIONLESS_EPOCH
        self._named: dict[TopicPartition, Wanted] = {}
        """what the broker believes that we want. Invariant: empty unless the session is established."""

    def request(self, wanted: Mapping[TopicPartition, Wanted], limits: FetchLimits) -> FetchRequest:
        established = self._id != NO_SESSION
        named = self._named if established else {}
        changed = {p: want for p, want in wanted.items() if named.get(p) != want}
        replaced = {p: named[p] for p in changed if p in named and named[p].topic_id != changed[p].topic_id}
        gone = {p: want for p, want in named.items() if p not in wanted} | replaced
        if self._enabled:
            self._named = dict(wanted)
        return FetchRequest(
            max_wait_ms=limits.max_wait_ms,
            min_bytes=limits.min_bytes,
            max_bytes=limits.max_bytes,
            isolation_level=limits.isolation,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=_topics(changed),
            forgotten_topics_data=_forgotten(gone),
            rack_id=limits.rack,
        )

    def on_answer(self, session_id: int) -> None:
        """The broker has taken the request; id 0: it keeps no session for us."""
        if not self._enabled:
            return
        if session_id == NO_SESSION:
            self.reset()
            return
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        self._id = session_id

    def reset(self) -> None:
        """Out of step, or the connection broke: begin a new session and name everything."""
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH if self._enabled else SESSIONLESS_EPOCH
        self._named = {}


def _topics(wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for (name, index), want in wanted.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic=name, topic_id=want.topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.fetch_offset,
                last_fetched_epoch=want.last_fetched_epoch,
                partition_max_bytes=want.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(gone: Mapping[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for (name, index), want in gone.items():
        topic = topics.get((name, want.topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=name, topic_id=want.topic_id, partitions=[])
            topics[name, want.topic_id] = topic
        topic.partitions.append(index)
    return list(topics.values())
