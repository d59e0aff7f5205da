"""A consumer of a group, by either protocol: membership, committed offsets and the fetcher in one talk.

Heartbeats go out while `poll` runs: call it more often than the session times out, as one should anyway.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.wire import fetch, group
from penstock.wire.cluster import Cluster
from penstock.wire.consumer_member import ConsumerMember
from penstock.wire.conversation import Await, Conversation, Effect, Tell, now
from penstock.wire.group import Assigned, Lost, Member, Revoked
from penstock.wire.group_offsets import commit_offsets, fetch_offsets
from penstock.wire.positions import BY_POLICY, Fetched
from penstock.wire.transactions import Committed, GroupMember


class GroupConsumer:
    def __init__(self, cluster: Cluster, member: group.Settings, fetching: fetch.Settings | None = None) -> None:
        self._cluster = cluster
        self._topics = member.topics
        self._member: Member | ConsumerMember = (
            ConsumerMember(cluster, member) if member.protocol == "consumer" else Member(cluster, member)
        )
        self._fetcher = fetch.Fetcher(cluster, fetching)
        self._group_id = member.group_id

    @property
    def assignment(self) -> list[TopicPartition]:
        return list(self._member.assignment)

    @property
    def identity(self) -> GroupMember:
        """For `Producer.send_offsets`."""
        return self._member.identity

    def positions(self) -> dict[TopicPartition, Committed]:
        """The next offset to read of each partition whose position is known: what `commit` commits by default."""
        return {
            partition: Committed(position.offset, position.offset_epoch)
            for partition, position in self._fetcher.positions.items()
            if position.is_known
        }

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._fetcher.seek(partition, offset)

    def poll(self, timeout_ms: int) -> Conversation[list[Fetched]]:
        """What has arrived; takes part in rebalances meanwhile."""
        end_ms = (yield from now()) + timeout_ms
        while True:
            yield from self._stay()
            if fetched := (yield from self._fetcher.harvest()):
                return fetched
            yield from self._fetcher.request()
            now_ms = yield from now()
            if now_ms >= end_ms:
                return []
            wait_ms = min(end_ms - now_ms, self._member.heartbeat_in_ms(now_ms), self._fetcher.wait_ms(now_ms))
            yield Await(self._fetcher.tickets(), wait_ms)

    def commit(self, offsets: Mapping[TopicPartition, Committed] | None = None) -> Conversation[None]:
        """Where nothing is given: everything that `poll` has returned. A refusal also makes the next `poll` rejoin."""
        chosen = self.positions() if offsets is None else offsets
        if not chosen:
            return
        try:
            yield from commit_offsets(self._cluster, self._member.identity, chosen)
        except KafkaError as error:
            yield from self._with_positions(self._member.refused(error))
            raise

    def committed(self) -> Conversation[dict[TopicPartition, Committed]]:
        return (yield from fetch_offsets(self._cluster, self._group_id, self._member.assignment))

    def close(self) -> Conversation[None]:
        """Leave the group. What was not committed will be read again by whoever gets it."""
        yield from self._with_positions(self._member.leave())

    def _stay(self) -> Conversation[None]:
        yield from self._with_positions(self._member.heartbeat())
        while self._member.needs_join:
            yield from self._with_positions(self._member.join())

    def _with_positions(self, talk: Conversation[None]) -> Generator[Effect, Any, None]:
        """Run a talk of the member; partitions come into the fetcher before, and leave it after, the application
        hears of them: so a listener can seek what is new and still knows the positions of what goes."""
        reply: Any = None
        error: KafkaError | None = None
        while True:
            try:
                effect = talk.send(reply) if error is None else talk.throw(error)
            except StopIteration:
                return
            reply = error = None
            if isinstance(effect, Tell) and isinstance(effect.event, Assigned):
                yield from self._start(effect.event.partitions)
            try:
                reply = yield effect
            except KafkaError as refused:
                error = refused
            if isinstance(effect, Tell) and isinstance(effect.event, Revoked | Lost):
                self._stop(effect.event.partitions)

    def _start(self, added: list[TopicPartition]) -> Conversation[None]:
        committed: dict[TopicPartition, Committed] = {}
        if added:
            try:
                committed = yield from fetch_offsets(self._cluster, self._group_id, added)
            except KafkaError:
                self._member.needs_join = True
                raise
        offsets = dict.fromkeys(self._fetcher.positions, BY_POLICY)
        for partition in added:
            offsets[partition] = committed[partition].offset if partition in committed else BY_POLICY
        self._fetcher.assign(offsets)

    def _stop(self, gone: list[TopicPartition]) -> None:
        self._fetcher.assign({p: BY_POLICY for p in self._fetcher.positions if p not in gone})
