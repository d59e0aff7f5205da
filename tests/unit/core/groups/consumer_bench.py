"""One group shard with a log, a clock and topics, for tests of consumer groups; and consumers as clients would be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from test_modern_metadata import image_of

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now
from penstock.core.coordinator.runtime import Pending, Runtime
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.heartbeat import HeartbeatContext
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.state import RequestContext
from penstock.core.metadata.image import Image
from penstock.protocol.generated.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.protocol.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

GROUP = "g"


class Counting:
    """A `Random` whose bytes are the numbers 1, 2, 3."""

    def __init__(self) -> None:
        self.count = 0

    def bytes(self, count: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(count, "big")

    def below(self, bound: int) -> int:
        return 0


class Bench:
    def __init__(self, config: GroupConfig | None = None, **topics: int) -> None:
        self.config = config or GroupConfig()
        self.metadata = Metadata(image_of(**topics))
        self.random = Counting()
        self.ms = 1_000
        self.log: list[CoordinatorRecord] = []
        self.runtime = Runtime(GroupShard(self.config, self.random, self.metadata))
        self.runtime.activate(0, self.now)
        self.answers: dict[int, object] = {}

    @property
    def now(self) -> Now:
        return Now(self.ms, 1_700_000_000_000 + self.ms)

    @property
    def shard(self) -> GroupShard:
        return self.runtime.shard

    @property
    def group(self) -> ConsumerGroup:
        return self.shard.state.store.consumers[GROUP]

    def ask(self, operation: Any, request: object, context: object) -> Any:
        """The answer, a `Pending` where it is not there yet; refusals are raised."""
        answer = self.runtime.submit(operation, request, context, self.now)
        self.settle()
        if isinstance(answer, Pending) and answer.ticket in self.answers:
            answer = self.answers.pop(answer.ticket)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def settle(self) -> None:
        while (batch := self.runtime.take_batch()) is not None:
            self.log += batch
            self.runtime.appended(len(self.log) - 1, self.now)
            self.runtime.committed(len(self.log), self.now)
        self.answers.update(dict(self.runtime.take_answers()))
        self.runtime.check()
        self.shard.check()

    def later(self, ms: int) -> None:
        until_ms = self.ms + ms
        while (deadline_ms := self.runtime.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self.ms = max(deadline_ms, self.ms)
            self.runtime.tick(self.now)
            self.settle()
        self.ms = until_ms

    def topics(self, **counts: int) -> None:
        image = image_of(**counts)
        changed = [*self.metadata.image.topics_by_id, *image.topics_by_id]
        self.metadata.follow(image, changed)

    def configure(self, image: Image) -> None:
        self.metadata.follow(replace(image, topics=self.metadata.image.topics), [])

    def fail_over(self) -> None:
        """Another broker loads the log."""
        self.runtime = self.reloaded()
        self.runtime.activate(len(self.log), self.now)
        self.settle()

    def reloaded(self) -> Runtime[GroupShard]:
        runtime = Runtime(GroupShard(self.config, self.random, self.metadata))
        for offset, record in enumerate(self.log):
            runtime.replay(record, offset, -1)
        return runtime

    def heartbeat(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, **fields})
        context = HeartbeatContext(
            RequestContext(version, "client", "/1.2.3.4"), lambda topic: not topic.startswith("secret")
        )
        answer = self.ask(self.shard.consumer_heartbeat, request, context)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer


def commit(bench: Bench, member_id: str, epoch: int, *partitions: int, version: int = 9) -> None:
    request = OffsetCommitRequest(
        group_id=GROUP,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(
                name="x",
                partitions=[OffsetCommitRequestPartition(partition_index=at, committed_offset=5) for at in partitions],
            )
        ],
    )
    bench.ask(bench.shard.commit_offsets, request, RequestContext(version))


def refusal(call: Any, *arguments: Any, **fields: Any) -> ErrorCode:
    try:
        call(*arguments, **fields)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


class Consumer:
    """What a client does: own what it is told, give up what it is not told any more, start anew when it is fenced."""

    def __init__(self, bench: Bench, member_id: str, *topics: str, **fields: Any) -> None:
        self.bench = bench
        self.member_id = member_id
        self.topics = list(topics)
        self.fields = {"rebalance_timeout_ms": 30_000, **fields}
        self.epoch = 0
        self.owned: set[tuple[bytes, int]] = set()
        self.told: set[tuple[bytes, int]] = set()
        self.interval_ms = 0
        self.is_unsure = False
        """an answer was lost: the next heartbeat says everything, and so is told everything"""

    def join(self) -> Consumer:
        self.epoch, self.owned, self.told = 0, set(), set()
        subscribed = {} if "subscribed_topic_regex" in self.fields else {"subscribed_topic_names": self.topics}
        self._take(self.bench.heartbeat(member_id=self.member_id, topic_partitions=[], **subscribed, **self._fields()))
        return self

    def beat(self, **fields: Any) -> Consumer:
        """A heartbeat as a client sends it that says nothing new but what it owns."""
        asked = {"member_id": self.member_id, "member_epoch": self.epoch, **fields}
        if self.is_unsure:
            group = self.bench.shard.state.store.consumers.get(GROUP)
            member = None if group is None else group.members.get(self.member_id)
            known = {} if member is None else {"subscribed_topic_names": list(member.topics)}
            asked = {"rebalance_timeout_ms": 30_000, **known, **asked}
        if "instance_id" in self.fields:
            asked.setdefault("instance_id", self.fields["instance_id"])
        self._take(self.bench.heartbeat(topic_partitions=self._owned(), **asked))
        return self

    def revoke(self) -> Consumer:
        """Give up what it is not to have, and own what it is told."""
        self.owned = set(self.told)
        return self

    def leave(self, epoch: int = -1) -> None:
        static = {"instance_id": self.fields["instance_id"]} if "instance_id" in self.fields else {}
        self.bench.heartbeat(member_id=self.member_id, member_epoch=epoch, **static)
        self.owned, self.told = set(), set()

    @property
    def partitions(self) -> list[int]:
        return sorted(partition for _, partition in self.told)

    def _fields(self) -> dict[str, Any]:
        return self.fields

    def _owned(self) -> list[TopicPartitions]:
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            by_topic.setdefault(topic_id, []).append(partition)
        return [TopicPartitions(topic_id=topic_id, partitions=ats) for topic_id, ats in by_topic.items()]

    def _take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self.member_id = answer.member_id or self.member_id
        self.epoch = answer.member_epoch
        self.interval_ms = answer.heartbeat_interval_ms
        self.is_unsure = False
        if answer.assignment is not None:
            given = answer.assignment.topic_partitions
            self.told = {(one.topic_id, at) for one in given for at in one.partitions}
            self.owned |= self.told if not self.owned - self.told else set()
