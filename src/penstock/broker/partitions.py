"""All partitions that this broker leads: made and removed as the image says, found by name or id, written to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.ports import Clock, Disk, Jobs, Random
from penstock.broker.group_commit import GroupCommit
from penstock.broker.journal import Journal
from penstock.broker.log_closing import close_logs
from penstock.broker.log_directory import LogDirectory
from penstock.broker.waiters import Waiters
from penstock.core.log.config import FOREVER, LogConfig
from penstock.core.log.log import Appended, Origin
from penstock.core.log.rewrite import Writable
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image, Topic
from penstock.core.replication.partition import Partition
from penstock.core.replication.traffic import Traffic

log = Journal(__name__)

TopicValues = Callable[[Image, str], Mapping[str, str]]
"""the effective configuration of a topic"""


class Partitions:
    def __init__(
        self,
        disk: Disk,
        path: str,
        clock: Clock,
        jobs: Jobs,
        random: Random,
        waiters: Waiters,
        node_id: int,
        topic_values: TopicValues,
    ) -> None:
        self.disk = disk
        self.path = path
        """the data directory, as DescribeLogDirs names it"""
        self.waiters = waiters
        self.commit = GroupCommit(jobs, self._synced)
        self.directory = LogDirectory(disk, random)
        self.refusal: str | None = None
        """why nothing is written now, where the disk is too full"""
        self.traffic: dict[str, Traffic] = {}
        """counters by topic"""
        self.past_traffic = Traffic()
        """of topics that are gone: a sum over all must not fall when one is deleted"""
        self._flushing: dict[Partition, None] = {}
        """partitions with flush.ms that hold something unsynced"""
        self._clock = clock
        self._jobs = jobs
        self._node_id = node_id
        self._topic_values = topic_values
        self._places: dict[tuple[str | bytes, int], Partition] = {}
        """every partition twice: by its topic's name and by its id"""
        self._ids: dict[bytes, str] = {}

    def __len__(self) -> int:
        return len(self._places) // 2

    def all(self) -> Iterable[Partition]:
        return (partition for (topic, _), partition in self._places.items() if isinstance(topic, str))

    def find(self, topic: str | bytes, index: int) -> Partition:
        """The partition that this broker leads; KafkaError where there is none."""
        partition = self._places.get((topic, index))
        if partition is None:
            if isinstance(topic, bytes) and topic not in self._ids:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return partition

    def get(self, topic: str, index: int) -> Partition | None:
        return self._places.get((topic, index))

    def open(self, image: Image) -> None:
        """At the start: every partition of the image, recovered; what the image does not know is set aside."""
        me = image.brokers.get(self._node_id)
        topics = {topic.name: topic.id for topic in image.topics.values()}
        self.directory.begin(topics, None if me is None else me.incarnation_id)
        for topic in image.topics.values():
            self._make(image, topic)

    def apply(self, delta: Delta, image: Image) -> None:
        """The image moved on: follow it."""
        for topic in delta.deleted_topics.values():
            self._remove(topic)
        for topic_id in delta.changed_topics:
            self._make(image, image.topics_by_id[topic_id])
        for kind, name in delta.changed_configs:
            self._reconfigure(image, kind, name)

    def append(self, partition: Partition, buf: Writable, at: int, size: int, *, origin: Origin = "client") -> Appended:
        """Append, advance the watermark, wake who waits; on a topic that flushes first, have it synced."""
        traffic = partition.traffic
        traffic.produces += 1
        now_ms = self._clock.wall_ms()
        try:
            if self.refusal is not None and origin == "client":
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.refusal)
            appended = partition.append(buf, at, size, now_ms=now_ms, origin=origin)
        except KafkaError:
            traffic.failed_produces += 1
            raise
        if appended.duplicate:
            return appended
        traffic.messages_in += appended.last_offset - appended.first_offset + 1
        traffic.bytes_in += size
        if partition.log.config.flush_messages == 1:
            self.commit.want(partition)
        else:
            if partition.advance():
                self.waiters.moved(partition, size)
            if partition.log.sync_due(now_ms):
                self.commit.want(partition)
            elif partition.log.config.flush_ms != FOREVER:
                self._flushing[partition] = None
        return appended

    def flush_overdue(self) -> None:
        """Have those synced whose flush.ms is over though nobody writes to them any more."""
        now_ms = self._clock.wall_ms()
        for partition in [one for one in self._flushing if one.log.sync_due(now_ms)]:
            del self._flushing[partition]
            self.commit.want(partition)

    def delete_before(self, topic: str, index: int, offset: int | None) -> int:
        """Move a partition's start; None means up to the watermark. Returns where it starts now."""
        partition = self.find(topic, index)
        target = partition.high_watermark if offset is None else offset
        if not 0 <= target <= partition.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition.name} has no offset {target} to delete before")
        if not partition.log.config.is_deleted:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted only: its records are not deleted")
        return partition.log.delete_before(target)

    async def close(self, broker_epoch: int) -> None:
        """Everything synced, then the files that say so."""
        await self.commit.drained()
        await close_logs([partition.log for partition in self.all()], self._jobs)
        self.directory.close([(partition.name, partition.log) for partition in self.all()], broker_epoch)

    def _synced(self, partition: Partition) -> None:
        before = partition.high_watermark
        if partition.advance():
            self.waiters.moved(partition, 1)
        elif partition.log.failure is not None and before < partition.log.end_offset:
            self.waiters.gone(partition)

    def _make(self, image: Image, topic: Topic) -> None:
        mine = [(index, one) for index, one in topic.partitions.items() if self._node_id in one.replicas]
        new = [TopicPartition(topic.name, index) for index, _ in mine if (topic.name, index) not in self._places]
        self.directory.expect(new)
        config: LogConfig | None = None
        for index, described in mine:
            known = self._places.get((topic.name, index))
            if known is not None:
                known.leader_epoch = described.leader_epoch
                continue
            if config is None:
                config = LogConfig.from_values(self._topic_values(image, topic.name))
            name = TopicPartition(topic.name, index)
            opened = self.directory.open_log(name, topic.id, config, self._clock.wall_ms())
            traffic = self.traffic.setdefault(topic.name, Traffic())
            partition = Partition(name, topic.id, opened, described.leader_epoch, traffic)
            self._places[(topic.name, index)] = self._places[(topic.id, index)] = partition
            if partition.high_watermark < opened.end_offset:
                self.commit.want(partition)
        self._ids[topic.id] = topic.name

    def _remove(self, topic: Topic) -> None:
        for index in topic.partitions:
            partition = self._places.pop((topic.name, index), None)
            self._places.pop((topic.id, index), None)
            if partition is not None:
                self._flushing.pop(partition, None)
                self.waiters.gone(partition)
                self.directory.remove_log(partition.name)
        self._ids.pop(topic.id, None)
        if topic.name in self.traffic:
            self.past_traffic.add(self.traffic.pop(topic.name))

    def _reconfigure(self, image: Image, kind: int, name: str) -> None:
        """A topic's configuration changed, or a broker's that gives topics their defaults."""
        if kind == ResourceType.TOPIC:
            topics = [name] if name in image.topics else []
        elif kind == ResourceType.BROKER:
            topics = list(image.topics)
        else:
            return
        for topic in topics:
            config = LogConfig.from_values(self._topic_values(image, topic))
            for index in image.topics[topic].partitions:
                partition = self._places.get((topic, index))
                if partition is not None:
                    partition.log.configure(config)
