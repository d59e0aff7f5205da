"""A member of a share group (KIP-932): it says what it subscribes to, and is told which partitions to fetch from.

Members share: nothing has to be given up before somebody else may have it, so what is told holds at once. After an
answer that never came the next heartbeat says everything, so that the assignment in it is told once more.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition, id_text
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.generated.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Chance, Conversation, now
from penstock.wire.retries import BACKOFF
from penstock.wire.routes import ask_coordinator, refresh

CHANNEL = "group"
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
JOIN_TIMEOUT_MS = 60_000

MEMBERSHIP_OVER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND})


class ShareMember:
    def __init__(self, cluster: Cluster, group_id: str, topics: tuple[str, ...], rack: str | None = None) -> None:
        self._cluster = cluster
        self._group_id = group_id
        self._topics = topics
        self._rack = rack
        self._epoch = JOIN_EPOCH
        self._told: dict[bytes, list[int]] = {}
        """what we fetch from, by topic id."""
        self._says_all = True
        self._heartbeat_due_ms = 0
        self._failures = 0
        """heartbeats in a row that were not answered."""
        self.member_id = ""
        """our own choice; share sessions are known by it too."""
        self.needs_join = True
        self.assignment: dict[TopicPartition, bytes] = {}
        """with the ids of the topics."""

    def heartbeat_in_ms(self, now_ms: int) -> int:
        return max(0, self._heartbeat_due_ms - now_ms)

    def join(self) -> Conversation[None]:
        while self.needs_join:
            try:
                yield from self._report(JOIN_TIMEOUT_MS)
            except KafkaError as error:
                if error.code not in MEMBERSHIP_OVER:
                    raise
                self._forget()

    def heartbeat(self) -> Conversation[None]:
        """Where one is due. Afterwards `needs_join` tells whether the group goes on without us."""
        now_ms = yield from now()
        if self.needs_join or now_ms < self._heartbeat_due_ms:
            return
        try:
            yield from self._report(0)
        except KafkaError as error:
            if error.code in MEMBERSHIP_OVER:
                self._forget()
                return
            retry = BACKOFF.decide(error, self._failures)
            if retry is None:
                raise
            self._says_all = True
            self._failures += 1
            self._heartbeat_due_ms = (yield from now()) + retry.after_ms

    def leave(self) -> Conversation[None]:
        if not self.member_id:
            return
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=LEAVE_EPOCH
        )
        self._forget()
        try:
            yield from self._ask(request, REQUEST_TIMEOUT_MS)
        except KafkaError as error:
            if error.code not in MEMBERSHIP_OVER:
                raise

    def _report(self, timeout_ms: int) -> Conversation[None]:
        if not self.member_id:
            self.member_id = id_text((yield Chance(1 << 128)).to_bytes(16, "big"))
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=self._epoch
        )
        if self._says_all:
            request.subscribed_topic_names = list(self._topics)
            request.rack_id = self._rack
        answer = yield from self._ask(request, timeout_ms)
        self._epoch = answer.member_epoch
        self._says_all = self.needs_join = False
        self._failures = 0
        self._heartbeat_due_ms = (yield from now()) + answer.heartbeat_interval_ms
        if answer.assignment is not None:
            self._told = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        yield from self._take_up()

    def _take_up(self) -> Conversation[None]:
        """A topic of which nobody has told us the name yet is taken up with a later heartbeat."""
        names = self._cluster.names
        if any(topic_id not in names for topic_id in self._told):
            self._cluster.want(self._topics)
            yield from refresh(self._cluster)
        self.assignment = {
            TopicPartition(names[topic_id], index): topic_id
            for topic_id, indexes in self._told.items()
            if topic_id in names
            for index in indexes
        }

    def _ask(self, request: ShareGroupHeartbeatRequest, timeout_ms: int) -> Conversation[ShareGroupHeartbeatResponse]:
        return ask_coordinator(
            self._cluster,
            CoordinatorKind.GROUP,
            self._group_id,
            request,
            ShareGroupHeartbeatResponse,
            lambda reply: reply.error_code,
            timeout_ms=timeout_ms,
            channel=CHANNEL,
        )

    def _forget(self) -> None:
        """The group goes on without us; the next join begins anew."""
        self._epoch, self.needs_join, self._says_all = JOIN_EPOCH, True, True
        self._told, self.assignment = {}, {}
