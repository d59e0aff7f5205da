"""What members of consumer groups (KIP-848) and of share groups (KIP-932) have in common.

One request does everything: a heartbeat joins (epoch 0), says what is new since the last one, and is answered with the
member's epoch and, where it changed, its assignment. After an answer that never came the next heartbeat says
everything, so that the assignment in it is told once more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition, id_text
from penstock.protocol.message import Message
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Chance, Conversation, now
from penstock.wire.group import Answer, ask_group
from penstock.wire.retries import BACKOFF

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

MEMBERSHIP_OVER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND})


class Heartbeat(Answer, Protocol):
    member_epoch: int
    heartbeat_interval_ms: int


T = TypeVar("T", bound=Heartbeat)


class HeartbeatMember(ABC):
    def __init__(self, cluster: Cluster, group_id: str, join_timeout_ms: int) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._join_timeout_ms = join_timeout_ms
        self._epoch = JOIN_EPOCH
        self._told: Mapping[bytes, list[int]] = {}
        """what we are to have, by topic id."""
        self._says_all = True
        self._heartbeat_due_ms = 0
        self._failures = 0
        """heartbeats in a row that were not answered."""
        self.member_id = ""
        """our own choice (KIP-1082), kept for as long as this object is."""
        self.needs_join = True

    def heartbeat_in_ms(self, now_ms: int) -> int:
        return max(0, self._heartbeat_due_ms - now_ms)

    def join(self) -> Conversation[None]:
        """Until the group has taken us and we have what it gave us."""
        while self.needs_join:
            self._says_all = True
            try:
                yield from self._report(self._join_timeout_ms)
            except KafkaError as error:
                if error.code not in MEMBERSHIP_OVER:
                    raise
                yield from self._forget()

    def heartbeat(self) -> Conversation[None]:
        """Where one is due. One that is not answered is sent again later; what we have stays ours until the
        coordinator says otherwise. Afterwards `needs_join` tells whether it has."""
        now_ms = yield from now()
        if self.needs_join or now_ms < self._heartbeat_due_ms:
            return
        try:
            yield from self._report(0)
        except KafkaError as error:
            retry = BACKOFF.decide(error, self._failures)
            if retry is None:
                yield from self.refused(error)
                return
            self._says_all = True
            self._failures += 1
            self._heartbeat_due_ms = (yield from now()) + retry.after_ms

    def refused(self, error: KafkaError) -> Conversation[None]:
        """A heartbeat was refused: repair what can be repaired, else raise the refusal."""
        if error.code not in MEMBERSHIP_OVER:
            raise error
        yield from self._forget()

    @abstractmethod
    def _report(self, timeout_ms: int) -> Conversation[None]:
        """One heartbeat, and what its answer asks for."""

    @abstractmethod
    def _forget(self) -> Conversation[None]:
        """The group goes on without us; the next join begins anew."""

    def _begin_anew(self) -> None:
        self._epoch, self.needs_join, self._says_all = JOIN_EPOCH, True, True
        self._told = {}

    def _named(self) -> Conversation[str]:
        """The member's id, chosen when it is first needed."""
        if not self.member_id:
            self.member_id = id_text((yield Chance(1 << 128)).to_bytes(16, "big"))
        return self.member_id

    def _beat(self, request: Message, answer: type[T], timeout_ms: int) -> Conversation[T]:
        """Tell the coordinator, and take what every answer says."""
        reply = yield from ask_group(self._cluster, self._group_id, request, answer, timeout_ms)
        self._epoch = reply.member_epoch
        self._says_all = self.needs_join = False
        self._failures = 0
        self._heartbeat_due_ms = (yield from now()) + reply.heartbeat_interval_ms
        return reply

    def _say_goodbye(self, request: Message, answer: type[T]) -> Conversation[None]:
        try:
            yield from ask_group(self._cluster, self._group_id, request, answer, REQUEST_TIMEOUT_MS)
        except KafkaError as error:
            if error.code not in MEMBERSHIP_OVER:
                raise

    def _placed(self) -> dict[TopicPartition, bytes]:
        """What we are to have, with the ids of the topics, as far as somebody has told us their names."""
        names = self._cluster.names
        return {
            TopicPartition(names[topic_id], index): topic_id
            for topic_id, indexes in self._told.items()
            if topic_id in names
            for index in indexes
        }

    def _lacks_names(self) -> bool:
        return any(topic_id not in self._cluster.names for topic_id in self._told)
