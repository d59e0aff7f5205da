"""A group shard with share groups, driven by hand: the log is a list, time is a number, topics are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.base.errors import KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now
from penstock.core.coordinator.runtime import Pending, Runtime
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.share.config import ShareGroupConfig
from penstock.core.groups.share.group import ShareGroup
from penstock.core.groups.share.heartbeat import check_request
from penstock.core.groups.share.partitions import Initialization
from penstock.core.groups.state import RequestContext
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.generated.share_group_heartbeat_response import ShareGroupHeartbeatResponse

WALL_MS = 1_700_000_000_000
CONTEXT = RequestContext(1, "client", "/host")
ONE = Partition((1,), (1,), 1, 0, 0)


class NoRandom:
    def bytes(self, count: int) -> bytes:
        return bytes(count)

    def below(self, bound: int) -> int:
        return 0


def topic_id(name: str) -> bytes:
    return name.encode().rjust(16, b"\x01")


def image_of(**topics: int) -> Image:
    made = {name: Topic(name, topic_id(name), dict.fromkeys(range(count), ONE)) for name, count in topics.items()}
    return Image(topics=made, topics_by_id={topic.id: topic for topic in made.values()})


class Bench:
    config = GroupConfig()

    def __init__(self, log: list[CoordinatorRecord] | None = None, max_size: int = 200, **topics: int) -> None:
        self.ms = 100_000
        self.log = log if log is not None else []
        self.asked: list[Initialization] = []
        """what share coordinators have not been asked yet"""
        self.metadata = Metadata(image_of(**topics))
        config = replace(self.config, share=ShareGroupConfig(max_size=max_size))
        self.runtime = Runtime(GroupShard(config, NoRandom(), self.metadata))
        for offset, record in enumerate(self.log):
            self.runtime.replay(record, offset, -1)
        self.runtime.activate(len(self.log), self.now)

    @property
    def now(self) -> Now:
        return Now(self.ms, WALL_MS + self.ms)

    @property
    def shard(self) -> GroupShard:
        return self.runtime.shard

    @property
    def groups(self) -> dict[str, ShareGroup]:
        return self.shard.state.store.shares

    def topics(self, **topics: int) -> None:
        image = image_of(**topics)
        self.metadata.follow(image, [*self.metadata.image.topics_by_id, *image.topics_by_id])

    def ask(self, operation: Callable[..., Any], request: object, context: object = None) -> Any:
        answer = self.runtime.submit(operation, request, context, self.now)
        if not isinstance(answer, Pending):
            return answer
        found = self.flush()[answer.ticket]
        if isinstance(found, KafkaError):
            raise found
        return found

    def flush(self) -> dict[int, object]:
        answers = self.runtime.take_answers()
        while (batch := self.runtime.take_batch()) is not None:
            self.log += batch
            self.runtime.appended(len(self.log) - 1, self.now)
            self.runtime.committed(len(self.log), self.now)
            answers += self.runtime.take_answers()
        self.shard.check()
        self.runtime.check()
        return dict(answers)

    def pass_ms(self, ms: int) -> None:
        self.ms += ms
        while (deadline_ms := self.runtime.next_deadline_ms()) is not None and deadline_ms <= self.ms:
            self.runtime.tick(self.now)
            self.flush()

    def heartbeat(
        self, member: str, epoch: int, topics: list[str] | None = None, *, group: str = "g", rack: str | None = None
    ) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, rack_id=rack, subscribed_topic_names=topics
        )
        check_request(request)
        response, initialize = self.ask(self.shard.share_heartbeat, request, CONTEXT)
        if initialize is not None:
            self.asked.append(initialize)
        told: ShareGroupHeartbeatResponse = response
        return told

    def begin(self) -> None:
        """The share coordinator does all it is asked."""
        asked, self.asked = self.asked, []
        for one in asked:
            self.ask(self.shard.share_initialized, one)

    def join(self, *members: str, topics: list[str], group: str = "g") -> None:
        """Until everybody has its part."""
        epochs = {member: self.heartbeat(member, 0, topics, group=group).member_epoch for member in members}
        self.begin()
        for _ in range(2):
            self.ms += 2_000
            for member in members:
                epochs[member] = self.heartbeat(member, epochs[member], group=group).member_epoch

    def again(self) -> dict[str, ShareGroup]:
        """What another broker would know that loads the log."""
        return Bench(list(self.log)).groups

    def compacted(self) -> dict[str, ShareGroup]:
        """The same from a log of which only the last record of each key is left, tombstones gone."""
        last = {record.key: at for at, record in enumerate(self.log)}
        kept = [one for at, one in enumerate(self.log) if last[one.key] == at and one.value is not None]
        return Bench(kept).groups

    def assigned(self, group: str = "g") -> dict[str, list[tuple[bytes, int]]]:
        return {
            member_id: [(topic, index) for topic, indexes in member.assigned.items() for index in indexes]
            for member_id, member in self.groups[group].members.items()
        }
