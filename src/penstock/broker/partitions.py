"""All partitions that have a copy here: made, led, followed and removed as the image says, found by name or id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from penstock.base.ports import Clock, Disk, Jobs, Random
from penstock.broker.group_commit import GroupCommit
from penstock.broker.journal import Journal
from penstock.broker.log_closing import close_logs
from penstock.broker.log_directory import LogDirectory
from penstock.broker.waiters import Waiters
from penstock.core.log.config import FOREVER, LogConfig
from penstock.core.log.log import Appended, Log, Origin
from penstock.core.log.rewrite import Writable
from penstock.core.log.verification import Guard
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import EMPTY, Image, Topic
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.isr import IsrChange
from penstock.core.replication.leading import Cluster
from penstock.core.replication.partition import Partition
from penstock.core.replication.traffic import Traffic, Upkeep

log = Journal(__name__)

TopicValues = Callable[[Image, str], Mapping[str, str]]
"""the effective configuration of a topic"""
FLUSHED_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
"""What is answered from these logs is on the disk, whatever flush.messages says."""


class Changes(NamedTuple):
    """What became of the copies here when the image moved on."""

    led: list[Partition]
    """in an epoch in which they were not led from here before"""
    followed: list[Partition]
    """of a leader, or in an epoch, that they did not follow before, or now synced before the leader hears of it, or now
    not"""
    removed: list[Partition]
    joining: list[tuple[Partition, IsrChange]]
    """followers that may join the ISR now: what is to be asked of the controller"""


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
        self.upkeep = Upkeep()
        self.on_failure: Callable[[Partition], None] = lambda _: None
        """called with a copy whose log has failed, perhaps more than once, and when it is whole again"""
        self._flushing: dict[Partition, None] = {}
        """partitions with flush.ms that hold something unsynced"""
        self.cluster = Cluster(node_id)
        self._image = EMPTY
        """as far as it was followed"""
        self._clock = clock
        self._jobs = jobs
        self._node_id = node_id
        self._topic_values = topic_values
        self._places: dict[tuple[str | bytes, int], Partition] = {}
        """every partition twice: by its topic's name and by its id"""
        self._all: dict[Partition, None] = {}
        self._ids: dict[bytes, str] = {}

    def __len__(self) -> int:
        return len(self._all)

    def all(self) -> Iterable[Partition]:
        return self._all.keys()

    def find(self, topic: str | bytes, index: int) -> Partition:
        """The copy here, led or followed; KafkaError where there is none."""
        partition = self._places.get((topic, index))
        if partition is None:
            raise self._absent(topic, index)
        return partition

    def _absent(self, topic: str | bytes, index: int) -> KafkaError:
        by_id = isinstance(topic, bytes)
        known = self._image.topics_by_id.get(topic) if isinstance(topic, bytes) else self._image.topics.get(topic)
        if known is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if index not in known.partitions:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{known.name}-{index} has no copy here")

    def get(self, topic: str | bytes, index: int) -> Partition | None:
        return self._places.get((topic, index))

    def open(self, image: Image) -> Changes:
        """At the start: every copy that the image wants here, recovered; what the image does not know is set aside."""
        self._know(image)
        me = image.brokers.get(self._node_id)
        topics = {topic.name: topic.id for topic in image.topics.values()}
        wanted = {
            f"{topic.name}-{index}"
            for topic in image.topics.values()
            for index, one in topic.partitions.items()
            if self._node_id in one.replicas
        }
        self.directory.begin(topics, None if me is None else me.incarnation_id, wanted)
        changes = Changes([], [], [], [])
        for topic in image.topics.values():
            self._place(image, topic, changes)
        return changes

    def apply(self, delta: Delta, image: Image) -> Changes:
        """The image moved on: follow it."""
        self._know(image)
        changes = Changes([], [], [], [])
        for topic in delta.deleted_topics.values():
            self._remove(topic, changes)
        for topic_id in delta.changed_topics:
            self._place(image, image.topics_by_id[topic_id], changes)
        for kind, name in delta.changed_configs:
            self._reconfigure(image, kind, name, changes)
        if delta.changed_brokers:
            for partition in self.all():
                # The watermark waits for a copy that was about to join the ISR, until its broker is fenced; of a copy
                # that is not in the ISR yet, the metadata say nothing more than that.
                self.advance(partition)
                self._let_join(partition, changes)
        return changes

    def _let_join(self, partition: Partition, changes: Changes) -> None:
        change = partition.joiner()
        if change is not None:
            changes.joining.append((partition, change))

    def _know(self, image: Image) -> None:
        self._image = image
        self.cluster.brokers = image.brokers
        self.cluster.now_ms = self._clock.monotonic_ms()

    def append(
        self,
        partition: Partition,
        buf: Writable,
        at: int,
        size: int,
        *,
        origin: Origin = "client",
        to_all: bool = False,
        guard: Guard | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Append, advance the watermark, wake who waits; on a topic that flushes first, have it synced. `to_all`: the
        answer will wait for all copies in sync, and there must be enough of them. `guard`, `transaction_version`: as
        in `Log.append`."""
        traffic = partition.traffic
        traffic.produces += 1
        now_ms = self._clock.wall_ms()
        try:
            if self.refusal is not None and origin == "client":
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.refusal)
            appended = partition.append(
                buf,
                at,
                size,
                now_ms=now_ms,
                origin=origin,
                to_all=to_all,
                guard=guard,
                transaction_version=transaction_version,
            )
        except KafkaError:
            traffic.failed_produces += 1
            if partition.log.failure is not None:
                self.on_failure(partition)
            raise
        if appended.duplicate:
            return appended
        traffic.messages_in += appended.last_offset - appended.first_offset + 1
        traffic.bytes_in += size
        if partition.copiers:
            self.waiters.grew(partition, size)
        if partition.log.config.flush_messages == 1:
            self.commit.want(partition)
        else:
            if partition.advance():
                self.waiters.moved(partition, size)
            self._sync_in_time(partition, now_ms)
        return appended

    def accept(self, partition: Partition, buf: Writable, at: int, size: int) -> bool:
        """Append what the leader sent. Whether it has to be synced before the leader may be told that it is here.
        Clients' records do not fill the room that is kept for the brokers' own."""
        if self.refusal is not None and partition.name.topic not in FLUSHED_TOPICS:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.refusal)
        now_ms = self._clock.wall_ms()
        try:
            partition.accept(buf, at, size, now_ms=now_ms)
        except KafkaError:
            if partition.log.failure is not None:
                self.on_failure(partition)
            raise
        if partition.log.config.flush_messages == 1:
            self.commit.want(partition)
            return True
        self._sync_in_time(partition, now_ms)
        return False

    def advance(self, partition: Partition) -> None:
        """A follower has fetched or is not waited for any more, or the ISR has changed: the watermark may move."""
        if partition.advance():
            self.waiters.moved(partition, 1)
        if self.waiters.hearing:
            self.waiters.heard(partition)

    def awaited(self, partition: Partition, offset: int) -> int:
        """How many wait for its watermark to come to `offset`, or to one before."""
        return self.waiters.passing(partition, offset)

    def cut(self, partition: Partition, offset: int) -> None:
        """As a follower: drop what is at `offset` and above. The checkpoint file goes first: a crash in between must
        not take the cut for damage."""
        self.directory.lower(partition.name, partition.log.truncation_point(offset))
        partition.cut(offset)
        self.waiters.cut(partition)

    def begin_at(self, partition: Partition, offset: int) -> None:
        """As a follower: drop everything and go on at `offset`."""
        self.directory.lower(partition.name, 0)
        partition.begin_at(offset)
        self.waiters.cut(partition)

    def reopen(self, partition: Partition) -> None:
        """As a follower: cut a log that was found damaged when it was opened to what is sound before the damage."""
        damaged = partition.log
        assert damaged.is_cut_short and partition.leading is None
        sound_offset = min([damaged.end_offset, *(one.offset for one in damaged.damage)])
        opened = self.directory.open_again(partition.name, damaged.config, self._clock.wall_ms(), sound_offset)
        opened.verifications.required = True
        partition.take(opened)
        self.waiters.cut(partition)
        self.on_failure(partition)

    def _sync_in_time(self, partition: Partition, now_ms: int) -> None:
        if partition.log.sync_due(now_ms):
            self.commit.want(partition)
        elif partition.log.config.flush_ms != FOREVER:
            self._flushing[partition] = None

    def flush_overdue(self) -> None:
        """Have those synced whose flush.ms is over though nobody writes to them any more."""
        now_ms = self._clock.wall_ms()
        for partition in [one for one in self._flushing if one.log.sync_due(now_ms)]:
            del self._flushing[partition]
            self.commit.want(partition)

    def tell_failures(self) -> None:
        """Of all copies: a log may fail while nobody writes to it."""
        for partition in self.all():
            if partition.log.failure is not None:
                self.on_failure(partition)

    def delete_before(self, topic: str, index: int, offset: int | None) -> tuple[Partition, int]:
        """Move a partition's start; None means up to the watermark. Returns where that is."""
        partition = self.find(topic, index)
        partition.must_lead()
        target = partition.high_watermark if offset is None else offset
        if not 0 <= target <= partition.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition.name} has no offset {target} to delete before")
        if not partition.log.config.is_deleted:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted only: its records are not deleted")
        partition.log.delete_before(target)
        self.waiters.tell_copiers(partition)
        return partition, target

    async def close(self, broker_epoch: int) -> None:
        """Everything synced, then the files that say so."""
        await self.commit.close()
        await close_logs([partition.log for partition in self.all()], self._jobs)
        self.directory.close(self.standing(), broker_epoch)

    def standing(self) -> list[tuple[TopicPartition, Log, int]]:
        """Every copy with its watermark, for the checkpoint files."""
        return [(partition.name, partition.log, partition.high_watermark) for partition in self.all()]

    def _synced(self, partition: Partition) -> None:
        if partition.advance():
            self.waiters.moved(partition, 1)
        self.waiters.synced(partition)
        if partition.log.failure is not None:
            self.on_failure(partition)
            # A follower's watermark may be above what it has synced: who waits for the disk waits in vain all the same.
            self.waiters.cut(partition)
            if partition.high_watermark < partition.log.end_offset:
                self.waiters.gone(partition)

    def _place(self, image: Image, topic: Topic, changes: Changes) -> None:
        """Give each copy of the topic its role, make those that are new, remove those that moved away."""
        self._make(image, topic)
        for index, described in topic.partitions.items():
            partition = self._places.get((topic.name, index))
            if partition is None or partition.described is described:
                continue
            if self._node_id not in described.replicas:
                self._drop(partition, changes)
            elif described.leader == self._node_id:
                self._lead(partition, described, changes)
            else:
                self._follow(partition, described, changes)

    def _lead(self, partition: Partition, described: Described, changes: Changes) -> None:
        if partition.lead(described):
            changes.led.append(partition)
            self._sync_before_ack(partition)
        self.advance(partition)
        self._let_join(partition, changes)

    def _sync_before_ack(self, partition: Partition) -> None:
        """As the leader: where only what is synced counts, have all of it synced, also if nobody appends any more."""
        if partition.flushes_before_ack and partition.log.synced_offset < partition.log.end_offset:
            self.commit.want(partition)

    def _follow(self, partition: Partition, described: Described, changes: Changes) -> None:
        led = partition.leading is not None
        if partition.follow(described):
            changes.followed.append(partition)
            if led:
                self.waiters.gone(partition)

    def _make(self, image: Image, topic: Topic) -> None:
        places = self._places
        new = [
            index
            for index, one in topic.partitions.items()
            if self._node_id in one.replicas and (topic.name, index) not in places
        ]
        self._ids[topic.id] = topic.name
        if not new:
            return
        self.directory.expect([TopicPartition(topic.name, index) for index in new])
        config = self._log_config(image, topic.name)
        traffic = self.traffic.setdefault(topic.name, Traffic())
        for index in new:
            name = TopicPartition(topic.name, index)
            try:
                opened, mark = self._open(name, topic.id, config)
            except OSError as error:
                raise self._named(error, name, "opened") from error
            partition = Partition(name, topic.id, opened, self.cluster, traffic, mark)
            places[(topic.name, index)] = places[(topic.id, index)] = partition
            self._all[partition] = None

    def _open(self, name: TopicPartition, topic_id: bytes, config: LogConfig) -> tuple[Log, int]:
        """Its log and its watermark."""
        opened = self.directory.open_log(name, topic_id, config, self._clock.wall_ms())
        opened.verifications.required = True
        mark = self.directory.high_watermark(name)
        if mark > opened.end_offset:
            # A crash took the end. A second one must not find the old mark above records written since.
            self.directory.lower(name, opened.end_offset)
        return opened, mark

    def _named(self, error: OSError, name: TopicPartition, what: str) -> OSError:
        """The node stops with this error as its reason, far from here: it has to say what it is about."""
        return OSError(error.errno, f"partition {name} could not be {what} in {self.path}/{name}: {error}")

    def _remove(self, topic: Topic, changes: Changes) -> None:
        for index in topic.partitions:
            partition = self._places.get((topic.name, index))
            if partition is not None:
                self._drop(partition, changes)
        self._ids.pop(topic.id, None)
        if topic.name in self.traffic:
            self.past_traffic.add(self.traffic.pop(topic.name))

    def _drop(self, partition: Partition, changes: Changes) -> None:
        """The copy is not wanted here any more."""
        name = partition.name
        del self._places[(name.topic, name.partition)], self._places[(partition.topic_id, name.partition)]
        del self._all[partition]
        self._flushing.pop(partition, None)
        self.commit.forget(partition)
        partition.leading = partition.following = None
        self.waiters.gone(partition)
        try:
            self.directory.remove_log(name)
        except OSError as error:
            raise self._named(error, name, "removed") from error
        changes.removed.append(partition)

    def _log_config(self, image: Image, topic: str) -> LogConfig:
        config = LogConfig.from_values(self._topic_values(image, topic))
        return replace(config, flush_messages=1) if topic in FLUSHED_TOPICS else config

    def _reconfigure(self, image: Image, kind: int, name: str, changes: Changes) -> None:
        """A topic's configuration changed, or a broker's that gives topics their defaults."""
        if kind == ResourceType.TOPIC:
            topics = [name] if name in image.topics else []
        elif kind == ResourceType.BROKER:
            topics = list(image.topics)
        else:
            return
        for topic in topics:
            config = self._log_config(image, topic)
            for index in image.topics[topic].partitions:
                partition = self._places.get((topic, index))
                if partition is not None:
                    self._configure(partition, config, changes)

    def _configure(self, partition: Partition, config: LogConfig, changes: Changes) -> None:
        flushed = partition.flushes_before_ack
        partition.log.configure(config)
        if partition.leading is not None:
            partition.leading.require(config.min_insync_replicas)
            self._sync_before_ack(partition)
            self.advance(partition)
        elif partition.flushes_before_ack != flushed:
            changes.followed.append(partition)
