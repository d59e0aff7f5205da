"""A member of a consumer group (KIP-848, `group.protocol=consumer`): the coordinator assigns, the member follows.

One request does everything: a heartbeat joins (epoch 0), says what is new since the last one, and is answered with the
member's epoch and, where it changed, its assignment. What is not to be ours any more is given up before the next
heartbeat says so; what is new is ours at once, for the coordinator gives nothing away that somebody else still has.
After an answer that never came the next heartbeat says everything, so that the assignment in it is told once more.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition, id_text
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from penstock.protocol.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Chance, Conversation, Tell, now
from penstock.wire.group import CHANNEL, Assigned, Lost, Revoked, Settings
from penstock.wire.retries import BACKOFF
from penstock.wire.routes import ask_coordinator, refresh
from penstock.wire.transactions import GroupMember

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

MEMBERSHIP_OVER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND})


class ConsumerMember:
    """The doors of `group.Member`, with the other protocol behind them."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._member_id = ""
        """our own choice (KIP-1082), kept for as long as this object is."""
        self._epoch = JOIN_EPOCH
        self._owned: dict[TopicPartition, bytes] = {}
        """what we have, with the ids of the topics."""
        self._said: dict[TopicPartition, bytes] | None = {}
        """what the coordinator believes that we have; None: it has told us of another assignment, and is to hear what
        became of that, also where nothing did: until it has, it takes us for holding on to what we had."""
        self._told: dict[bytes, list[int]] = {}
        """what we are to have, by topic id."""
        self._says_all = True
        self._heartbeat_due_ms = 0
        self._failures = 0
        """heartbeats in a row that were not answered."""
        self.needs_join = True

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._owned)

    @property
    def identity(self) -> GroupMember:
        """For commits, plain or in a transaction."""
        settings = self._settings
        if self._epoch == JOIN_EPOCH:
            return GroupMember(settings.group_id)
        return GroupMember(settings.group_id, self._epoch, self._member_id, settings.instance_id)

    def heartbeat_in_ms(self, now_ms: int) -> int:
        return max(0, self._heartbeat_due_ms - now_ms)

    def join(self) -> Conversation[None]:
        """Until the group has taken us and we have what it gave us."""
        while self.needs_join:
            self._says_all = True
            try:
                yield from self._report(self._settings.rebalance_timeout_ms)
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
        """A heartbeat or a commit was refused: repair what can be repaired, else raise the refusal."""
        if error.code in MEMBERSHIP_OVER:
            yield from self._forget()
        elif error.code is ErrorCode.STALE_MEMBER_EPOCH:
            self._heartbeat_due_ms = 0
        else:
            raise error

    def leave(self) -> Conversation[None]:
        """A static member is away for a while: its partitions wait for it until the session times out."""
        yield from self._give_up(Revoked)
        if self._member_id:
            static = self._settings.instance_id is not None
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._settings.group_id,
                member_id=self._member_id,
                member_epoch=LEAVE_STATIC_EPOCH if static else LEAVE_EPOCH,
                instance_id=self._settings.instance_id,
            )
            try:
                yield from self._ask(request, REQUEST_TIMEOUT_MS)
            except KafkaError as error:
                if error.code not in MEMBERSHIP_OVER:
                    raise
        yield from self._forget()

    def _report(self, timeout_ms: int) -> Conversation[None]:
        """One heartbeat, and what its answer asks for."""
        if not self._member_id:
            self._member_id = id_text((yield Chance(1 << 128)).to_bytes(16, "big"))
        owned = dict(self._owned)
        answer = yield from self._ask(self._request(), timeout_ms)
        self._epoch = answer.member_epoch
        self._said = owned if answer.assignment is None else None
        self._says_all = self.needs_join = False
        self._failures = 0
        if answer.assignment is not None:
            self._told = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        self._heartbeat_due_ms = (yield from now()) + answer.heartbeat_interval_ms
        yield from self._reconcile()
        if self._owned != self._said:
            self._heartbeat_due_ms = 0

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        settings = self._settings
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self._member_id,
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

    def _ask(
        self, request: ConsumerGroupHeartbeatRequest, timeout_ms: int
    ) -> Conversation[ConsumerGroupHeartbeatResponse]:
        return ask_coordinator(
            self._cluster,
            CoordinatorKind.GROUP,
            self._settings.group_id,
            request,
            ConsumerGroupHeartbeatResponse,
            lambda reply: reply.error_code,
            timeout_ms=timeout_ms,
            channel=CHANNEL,
        )

    def _reconcile(self) -> Conversation[None]:
        """Give up what is not ours any more, then take what is new. A topic of which nobody has told us the name yet
        is taken with a later heartbeat."""
        names = yield from self._names()
        wanted = {
            TopicPartition(names[topic_id], index): topic_id
            for topic_id, indexes in self._told.items()
            if topic_id in names
            for index in indexes
        }
        gone = [one for one, topic_id in self._owned.items() if wanted.get(one) != topic_id]
        if gone:
            yield Tell(Revoked(gone))
            self._owned = {one: topic_id for one, topic_id in self._owned.items() if one not in gone}
        added = {one: topic_id for one, topic_id in wanted.items() if one not in self._owned}
        if added:
            yield Tell(Assigned(list(added)))
            self._owned |= added

    def _names(self) -> Conversation[dict[bytes, str]]:
        """Of the topics that we are to have, as far as they are known. What an expression stands for, only the
        coordinator knows: then all topics are asked for."""
        known = self._cluster.names
        if any(topic_id not in known for topic_id in self._told):
            self._cluster.want(self._settings.topics)
            yield from refresh(self._cluster, all_topics=self._settings.topic_regex is not None)
        return {topic_id: known[topic_id] for topic_id in self._told if topic_id in known}

    def _give_up(self, event: type[Revoked] | type[Lost]) -> Conversation[None]:
        """The member owns nothing afterwards."""
        if self._owned:
            yield Tell(event(list(self._owned)))
        self._owned = {}

    def _forget(self) -> Conversation[None]:
        """The group goes on without us; the next join begins anew."""
        self._epoch, self.needs_join, self._says_all = JOIN_EPOCH, True, True
        self._said, self._told = {}, {}
        yield from self._give_up(Lost)


def _by_id(owned: dict[TopicPartition, bytes]) -> list[TopicPartitions]:
    topics: dict[bytes, TopicPartitions] = {}
    for partition, topic_id in owned.items():
        topic = topics.setdefault(topic_id, TopicPartitions(topic_id=topic_id, partitions=[]))
        topic.partitions.append(partition.partition)
    return list(topics.values())
