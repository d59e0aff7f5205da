"""A member of a consumer group (KIP-848, `group.protocol=consumer`): the coordinator assigns, the member follows.

What is not to be ours any more is given up before the next heartbeat says so; what is new is ours at once, for the
coordinator gives nothing away that somebody else still has.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from penstock.protocol.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Conversation, Tell
from penstock.wire.group import Assigned, Lost, Revoked, Settings
from penstock.wire.heartbeat_member import JOIN_EPOCH, LEAVE_EPOCH, HeartbeatMember
from penstock.wire.routes import refresh
from penstock.wire.transactions import GroupMember

LEAVE_STATIC_EPOCH = -2


class ConsumerMember(HeartbeatMember):
    """The doors of `group.Member`, with the other protocol behind them."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        super().__init__(cluster, settings.group_id, settings.rebalance_timeout_ms)
        self._settings = settings
        self._owned: dict[TopicPartition, bytes] = {}
        """what we have, with the ids of the topics."""
        self._said: dict[TopicPartition, bytes] | None = {}
        """what the coordinator believes that we have; None: it has told us of another assignment, and is to hear what
        became of that, also where nothing did: until it has, it takes us for holding on to what we had."""

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._owned)

    @property
    def identity(self) -> GroupMember:
        """For commits, plain or in a transaction."""
        settings = self._settings
        if self._epoch == JOIN_EPOCH:
            return GroupMember(settings.group_id)
        return GroupMember(settings.group_id, self._epoch, self.member_id, settings.instance_id)

    def refused(self, error: KafkaError) -> Conversation[None]:
        """A heartbeat or a commit was refused: repair what can be repaired, else raise the refusal."""
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:
            self._heartbeat_due_ms = 0
        else:
            yield from super().refused(error)

    def leave(self) -> Conversation[None]:
        """A static member is away for a while: its partitions wait for it until the session times out."""
        yield from self._give_up(Revoked)
        if self.member_id:
            static = self._settings.instance_id is not None
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._settings.group_id,
                member_id=self.member_id,
                member_epoch=LEAVE_STATIC_EPOCH if static else LEAVE_EPOCH,
                instance_id=self._settings.instance_id,
            )
            yield from self._say_goodbye(request, ConsumerGroupHeartbeatResponse)
        yield from self._forget()

    def _report(self, timeout_ms: int) -> Conversation[None]:
        yield from self._named()
        owned = dict(self._owned)
        answer = yield from self._beat(self._request(), ConsumerGroupHeartbeatResponse, timeout_ms)
        self._said = owned if answer.assignment is None else None
        if answer.assignment is not None:
            self._told = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        yield from self._reconcile()
        if self._owned != self._said:
            self._heartbeat_due_ms = 0

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        settings = self._settings
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            instance_id=settings.instance_id,
        )
        if self._says_all:
            request.rack_id = settings.rack
            request.rebalance_timeout_ms = settings.rebalance_timeout_ms
            request.subscribed_topic_names = list(settings.topics)
            request.subscribed_topic_regex = settings.topic_regex
            request.server_assignor = settings.server_assignor
        if self._says_all or self._owned != self._said:
            request.topic_partitions = _by_id(self._owned)
        return request

    def _reconcile(self) -> Conversation[None]:
        """Give up what is not ours any more, then take what is new. A topic of which nobody has told us the name yet
        is taken with a later heartbeat."""
        yield from self._learn_names()
        wanted = self._placed()
        gone = [one for one, topic_id in self._owned.items() if wanted.get(one) != topic_id]
        if gone:
            yield Tell(Revoked(gone))
            self._owned = {one: topic_id for one, topic_id in self._owned.items() if one not in gone}
        added = {one: topic_id for one, topic_id in wanted.items() if one not in self._owned}
        if added:
            yield Tell(Assigned(list(added)))
            self._owned |= added

    def _learn_names(self) -> Conversation[None]:
        """Of the topics that we are to have. What an expression stands for, only the coordinator knows: then all topics
        are asked for."""
        if self._lacks_names():
            self._cluster.want(self._settings.topics)
            yield from refresh(self._cluster, all_topics=self._settings.topic_regex is not None)

    def _give_up(self, event: type[Revoked] | type[Lost]) -> Conversation[None]:
        """The member owns nothing afterwards."""
        if self._owned:
            yield Tell(event(list(self._owned)))
        self._owned = {}

    def _forget(self) -> Conversation[None]:
        self._begin_anew()
        self._said = {}
        yield from self._give_up(Lost)


def _by_id(owned: dict[TopicPartition, bytes]) -> list[TopicPartitions]:
    topics: dict[bytes, TopicPartitions] = {}
    for partition, topic_id in owned.items():
        topic = topics.setdefault(topic_id, TopicPartitions(topic_id=topic_id, partitions=[]))
        topic.partitions.append(partition.partition)
    return list(topics.values())
