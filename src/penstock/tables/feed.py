"""The topic as a table reads it: all partitions, committed records, from given offsets on.

Reading is by topic id, so a topic that was deleted and made anew is never taken for the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.base.errors import RETRIABLE, ErrorCode, KafkaError
from penstock.base.ids import NO_ID, TopicPartition
from penstock.tables.changes import Reached
from penstock.tables.errors import TableError
from penstock.tables.limits import FETCH_BYTES_MAX, FETCH_PARTITION_BYTES_MAX
from penstock.tables.store import Identity
from penstock.wire import admin, blocking, fetch
from penstock.wire.offsets import EARLIEST, LATEST, READ_COMMITTED, epoch_ends, list_offsets
from penstock.wire.positions import BY_POLICY, NO_EPOCH, Fetched, Position
from penstock.wire.routes import refresh, retrying
from penstock.wire.security import PLAINTEXT, Security
from penstock.wire.sessions import FetchLimits

DELETE_RETENTION_MS = 86_400_000
"""Kafka's default, where the topic's own cannot be asked."""
_WANTED = ("cleanup.policy", "delete.retention.ms")


class Lost(Exception):
    """What was read so far does not go on: the table must be loaded again. The text says why."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The offsets that a partition holds for a reader of committed records: start <= offset < end."""

    start: int
    end: int


class Feed:
    """Belongs to one thread, once it is made."""

    def __init__(self, bootstrap: str, topic: str, *, timeout_ms: int, security: Security = PLAINTEXT) -> None:
        self.topic = topic
        self.timeout_ms = timeout_ms
        self._client = blocking.Client(bootstrap, client_id=f"penstock-table-{topic}", security=security)
        limits = FetchLimits(isolation=READ_COMMITTED, max_bytes=FETCH_BYTES_MAX)
        settings = fetch.Settings(limits, partition_bytes_max=FETCH_PARTITION_BYTES_MAX, reset=fetch.Reset.NONE)
        self._fetcher = blocking.Fetcher(self._client, settings)
        self._topic_id = NO_ID

    def close(self) -> None:
        self._client.close()

    def identify(self) -> Identity:
        """What the topic is now. KafkaError where there is none, or nobody answers in time."""
        cluster = self._client.cluster
        cluster.want([self.topic])
        self._client.run(retrying(cluster, lambda: refresh(cluster), self.timeout_ms))
        if self.topic not in cluster.topics:
            code = cluster.refused.get(self.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise KafkaError(code, f"there is no topic {self.topic} ({code.name})")
        self._topic_id = cluster.topic_id(self.topic)
        if self._topic_id == NO_ID:
            raise TableError(
                f"the brokers know no topic ids (Kafka 2.8 and later do), a table of {self.topic} needs one"
            )
        return Identity(cluster.cluster_id or "", self.topic, self._topic_id.hex())

    def partitions(self) -> list[int]:
        known = self._client.cluster.topics.get(self.topic)
        return sorted(known.partitions) if known else []

    def settings(self) -> dict[str, str]:
        """The topic's cleanup.policy and delete.retention.ms, where we may ask."""
        try:
            found = self._client.run(
                admin.describe_configs(
                    self._client.cluster, admin.TOPIC, self.topic, _WANTED, timeout_ms=self.timeout_ms
                )
            )
        except KafkaError as error:
            if error.code in RETRIABLE:
                raise
            return {}
        return {one.name: one.value for one in found if one.value is not None}

    def bounds(self) -> dict[int, Bounds]:
        partitions = [TopicPartition(self.topic, index) for index in self.partitions()]
        cluster = self._client.cluster
        starts = self._client.run(
            list_offsets(cluster, dict.fromkeys(partitions, EARLIEST), timeout_ms=self.timeout_ms)
        )
        ends = self._client.run(
            list_offsets(
                cluster, dict.fromkeys(partitions, LATEST), isolation=READ_COMMITTED, timeout_ms=self.timeout_ms
            )
        )
        return {p.partition: Bounds(starts[p].offset, ends[p].offset) for p in partitions}

    def truncated_to(self, reached: Mapping[int, Reached]) -> dict[int, int]:
        """Partitions whose log no longer holds what was read of it, and where it parts."""
        asked = {
            TopicPartition(self.topic, index): one.leader_epoch
            for index, one in reached.items()
            if one.leader_epoch != NO_EPOCH
        }
        if not asked:
            return {}
        ends = self._client.run(epoch_ends(self._client.cluster, asked, timeout_ms=self.timeout_ms))
        return {
            p.partition: end.end_offset
            for p, end in ends.items()
            if 0 <= end.end_offset < reached[p.partition].next_offset
        }

    def start(self, reached: Mapping[int, Reached]) -> None:
        """Read every partition from here on."""
        self._fetcher.assign({TopicPartition(self.topic, index): one.next_offset for index, one in reached.items()})
        for index, one in reached.items():
            self._fetcher.core.seek(TopicPartition(self.topic, index), one.next_offset, one.leader_epoch)

    def poll(self, timeout_ms: int) -> list[Fetched]:
        """What has arrived. `Lost` where reading cannot go on; KafkaError for what a retry does not repair."""
        try:
            fetched = self._fetcher.poll(timeout_ms)
        except KafkaError as error:
            self._check_topic_id()
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                raise Lost(f"records were removed or lost before they were read ({error})") from error
            raise
        self._check_topic_id()
        return fetched

    def _check_topic_id(self) -> None:
        """Before anything fetched is used: the fetcher itself goes on with whatever has the topic's name."""
        if self._client.cluster.topic_id(self.topic) not in (NO_ID, self._topic_id):
            raise Lost(f"the topic {self.topic} was deleted and made anew")

    def ask_again(self) -> None:
        """About the topic itself, before the next poll: partitions may have been added, or it may be another one."""
        self._client.cluster.mark_stale()

    def add_new_partitions(self) -> list[int]:
        """Partitions that the topic was given since are read from their start."""
        read = self._fetcher.core.positions
        added = [index for index in self.partitions() if TopicPartition(self.topic, index) not in read]
        if added:
            wanted = dict.fromkeys(read, BY_POLICY)
            self._fetcher.assign({**wanted, **{TopicPartition(self.topic, index): EARLIEST for index in added}})
        return added

    def position(self, partition: int) -> Position:
        return self._fetcher.core.positions[TopicPartition(self.topic, partition)]

    def is_missing(self) -> bool:
        """Whether the topic was there and is no longer."""
        return self.topic not in self._client.cluster.topics

    def is_cut_off(self) -> bool:
        """Whether the last we heard of some partition was a failure."""
        return any(position.attempts for position in self._fetcher.core.positions.values())
