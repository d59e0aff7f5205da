"""A member of a share group (KIP-932): it says what it subscribes to, and is told which partitions to fetch from.

Members share: nothing has to be given up before somebody else may have it, so what is told holds at once.
"""

from __future__ import annotations

from penstock.base.ids import TopicPartition
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.generated.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Conversation
from penstock.wire.heartbeat_member import LEAVE_EPOCH, HeartbeatMember
from penstock.wire.routes import refresh

JOIN_TIMEOUT_MS = 60_000


class ShareMember(HeartbeatMember):
    """Share sessions are known by `member_id` too."""

    def __init__(self, cluster: Cluster, group_id: str, topics: tuple[str, ...], rack: str | None = None) -> None:
        super().__init__(cluster, group_id, JOIN_TIMEOUT_MS)
        self._topics = topics
        self._rack = rack
        self.assignment: dict[TopicPartition, bytes] = {}
        """with the ids of the topics."""

    def leave(self) -> Conversation[None]:
        if not self.member_id:
            return
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=LEAVE_EPOCH
        )
        yield from self._forget()
        yield from self._say_goodbye(request, ShareGroupHeartbeatResponse)

    def _report(self, timeout_ms: int) -> Conversation[None]:
        request = ShareGroupHeartbeatRequest(
            group_id=self._group_id, member_id=(yield from self._named()), member_epoch=self._epoch
        )
        if self._says_all:
            request.subscribed_topic_names = list(self._topics)
            request.rack_id = self._rack
        answer = yield from self._beat(request, ShareGroupHeartbeatResponse, timeout_ms)
        if answer.assignment is not None:
            self._told = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        yield from self._take_up()

    def _take_up(self) -> Conversation[None]:
        """A topic of which nobody has told us the name yet is taken up with a later heartbeat."""
        if self._lacks_names():
            self._cluster.want(self._topics)
            yield from refresh(self._cluster)
        self.assignment = self._placed()

    def _forget(self) -> Conversation[None]:
        self._begin_anew()
        self.assignment = {}
        yield from ()
