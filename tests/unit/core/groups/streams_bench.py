"""A group shard with streams groups, driven by hand, and threads of applications as clients would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.streams.group import StreamsGroup
from penstock.core.groups.streams.layout import Status
from penstock.core.groups.streams.tasks import Task
from penstock.core.groups.streams.topology import InternalTopic
from penstock.core.metadata.image import Image
from penstock.protocol.generated import streams_group_heartbeat_request as asked
from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from penstock.protocol.generated.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from penstock.protocol.generated.streams_group_heartbeat_response import TaskIds as ToldTaskIds
from tests.unit.core.groups import share_bench
from tests.unit.core.groups.share_bench import CONTEXT, image_of

GROUP = "app"
WORDS = "app-words-repartition"
COUNTS = "app-counts-changelog"


def word_count(epoch: int = 0, source: str = "lines") -> asked.Topology:
    """Lines are split, repartitioned by word, and counted."""
    words = asked.TopicInfo(name=WORDS)
    counts = asked.TopicInfo(name=COUNTS, topic_configs=[asked.KeyValue(key="cleanup.policy", value="compact")])
    split = asked.Subtopology(subtopology_id="0", source_topics=[source], repartition_sink_topics=[WORDS])
    count = asked.Subtopology(subtopology_id="1", repartition_source_topics=[words], state_changelog_topics=[counts])
    return asked.Topology(epoch=epoch, subtopologies=[split, count])


def only(source: str = "lines", *, stateful: bool = False) -> asked.Topology:
    """One subtopology that reads one topic."""
    kept = [asked.TopicInfo(name=COUNTS)] if stateful else []
    one = asked.Subtopology(subtopology_id="0", source_topics=[source], state_changelog_topics=kept)
    return asked.Topology(subtopologies=[one])


class Bench(share_bench.Bench):
    def __init__(self, log: list[CoordinatorRecord] | None = None, **topics: int) -> None:
        super().__init__(log, **{name.replace("_", "-"): count for name, count in topics.items()})
        self.missing: tuple[InternalTopic, ...] = ()
        """of the last heartbeat"""

    @property
    def streams(self) -> dict[str, StreamsGroup]:
        return self.shard.state.store.streams

    @property
    def group(self) -> StreamsGroup:
        return self.streams[GROUP]

    def beat(self, member: str, epoch: int, **fields: Any) -> StreamsGroupHeartbeatResponse:
        request = StreamsGroupHeartbeatRequest(group_id=GROUP, member_id=member, member_epoch=epoch, **fields)
        response, self.missing = self.ask(self.shard.streams_heartbeat, request, CONTEXT)
        told: StreamsGroupHeartbeatResponse = response
        return told

    def create_missing(self) -> None:
        """The controller makes the topics that it is asked for."""
        counts = {name: len(topic.partitions) for name, topic in self.metadata.image.topics.items()}
        counts.update({topic.name: topic.partitions for topic in self.missing})
        self.topics(**counts)

    def topics(self, **topics: int) -> None:
        self._follow(replace(image_of(**topics), configs=self.metadata.image.configs))

    def configure(self, **configs: str) -> None:
        names = {name.replace("_", "."): value for name, value in configs.items()}
        self._follow(replace(self.metadata.image, configs={(ResourceType.GROUP, GROUP): names}))

    def _follow(self, image: Image) -> None:
        self.metadata.follow(image, [*self.metadata.image.topics_by_id, *image.topics_by_id])

    def run(self, *threads: Thread, ms: int = 12_000) -> None:
        """Everybody reports as often as told and does what it is told, for a while."""
        end_ms = self.ms + ms
        while self.ms < end_ms:
            for thread in threads:
                thread.beat()
            self.create_missing()
            self.pass_ms(1_000)

    def stored_again(self) -> list[dict[str, StreamsGroup]]:
        """What other brokers would know that load the log, and the log as compaction leaves it."""
        last = {record.key: at for at, record in enumerate(self.log)}
        kept = [one for at, one in enumerate(self.log) if last[one.key] == at and one.value is not None]
        return [Bench(log).streams for log in (list(self.log), kept)]


class Thread:
    """One member: it has what it is told at the next heartbeat, and starts anew when it is fenced."""

    def __init__(
        self, bench: Bench, name: str, topology: asked.Topology | None = None, process: str = "", **fields: Any
    ) -> None:
        self.bench = bench
        self.name = name
        self.topology = topology or word_count()
        self.fields = {"process_id": process or f"process of {name}", **fields}
        self.epoch = 0
        self.active: list[Task] = []
        self.standby: list[Task] = []
        self.interval_ms = 0
        self.statuses: list[Status] = []
        self.details: list[str] = []

    def join(self) -> Thread:
        self.epoch, self.active, self.standby = 0, [], []
        told = {"rebalance_timeout_ms": 30_000, "topology": self.topology, **self.fields}
        self._take(self.bench.beat(self.name, 0, **self._owned(), **told))
        return self

    def beat(self, *, holds_on: bool = False, **fields: Any) -> Thread:
        """`holds_on`: it does not say what it has, as one that has not finished."""
        if not self.epoch:
            return self.join()
        try:
            self._take(self.bench.beat(self.name, self.epoch, **({} if holds_on else self._owned()), **fields))
        except KafkaError as error:
            assert error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
            self.join()
        return self

    def leave(self, **fields: Any) -> None:
        self.bench.beat(self.name, -1, **fields)
        self.epoch, self.active, self.standby = 0, [], []

    def _owned(self) -> dict[str, Any]:
        return {"active_tasks": _ids(self.active), "standby_tasks": _ids(self.standby), "warmup_tasks": []}

    def _take(self, answer: StreamsGroupHeartbeatResponse) -> None:
        assert answer.warmup_tasks in (None, [])
        self.epoch, self.interval_ms = answer.member_epoch, answer.heartbeat_interval_ms
        self.statuses = [Status(one.status_code) for one in answer.status or ()]
        self.details = [one.status_detail for one in answer.status or ()]
        if answer.active_tasks is not None:
            self.active, self.standby = _tasks(answer.active_tasks), _tasks(answer.standby_tasks or [])


def _ids(tasks: Iterable[Task]) -> list[asked.TaskIds]:
    found: dict[str, list[int]] = {}
    for name, number in tasks:
        found.setdefault(name, []).append(number)
    return [asked.TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in found.items()]


def _tasks(told: Iterable[ToldTaskIds]) -> list[Task]:
    return [(one.subtopology_id, number) for one in told for number in one.partitions]


def refusal(work: Callable[[], object]) -> tuple[ErrorCode, str | None]:
    try:
        work()
    except KafkaError as error:
        return error.code, error.message
    return ErrorCode.NONE, None
