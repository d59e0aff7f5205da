"""Markers: how far a query's tasks have come, kept as committed offsets of a group. `docs/formats/sink-markers.md`.

A **task marker** says up to which batch the task of that number has written: the offset is the next batch. It is
committed in the transaction that holds the rows, so that both are there or neither is. The **batch marker** says up to
which batch all tasks have: the driver commits it after them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.pipeline.sink.errors import SinkError
from penstock.wire import admin, blocking
from penstock.wire.conversation import REQUEST_TIMEOUT_MS
from penstock.wire.group_offsets import commit_offsets, fetch_offsets
from penstock.wire.routes import know_topics, refresh, retrying
from penstock.wire.transactions import Committed, GroupMember

PARTITIONS = 32
"""of the topic that markers are committed for. Never changed: a task's place follows from it."""
BATCH_PARTITION = 0
TASKS_PER_GROUP = PARTITIONS - 1
GROUP_PREFIX = "penstock-sink-"

LOOK_AROUND_MS = 3_000
"""A topic that was made just now is unknown to some broker for a moment."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a marker is."""

    group: str
    partition: int


def task_place(owner: str, task: int) -> Place:
    """The first 31 tasks are in the query's group, the next 31 in a second, and so on: the topic need not grow."""
    group, slot = divmod(task, TASKS_PER_GROUP)
    suffix = f".{group}" if group else ""
    return Place(f"{GROUP_PREFIX}{owner}{suffix}", slot + 1)


def batch_place(owner: str) -> Place:
    return Place(f"{GROUP_PREFIX}{owner}", BATCH_PARTITION)


@dataclass(frozen=True, slots=True)
class Marker:
    next_batch: int
    rows: int | None = None
    """of the batch before `next_batch`, in this task; None where nobody counted."""
    run: str = ""
    write: str = ""
    """who wrote: `Task.run` and `Task.write`."""

    def committed(self) -> Committed:
        note = "" if self.rows is None else json.dumps({"rows": self.rows, "run": self.run, "write": self.write})
        return Committed(self.next_batch, metadata=note)

    @classmethod
    def of(cls, committed: Committed) -> Marker:
        """A note that cannot be read only checks less: the number of the batch is what counts."""
        try:
            note = json.loads(committed.metadata or "{}")
            return cls(committed.offset, note.get("rows"), note.get("run", ""), note.get("write", ""))
        except (ValueError, AttributeError):
            return cls(committed.offset)


class Verdict(Enum):
    WRITE = "write"
    SKIP = "skip"
    """these rows are there."""
    LOST = "lost"
    """nobody knows any more whether they are."""


def judge(batch: int, own: Marker | None, whole: Marker | None) -> Verdict:
    """What a task of `batch` does, by its own marker and the batch marker.

    Brokers forget the offsets of a group without members, the older before the younger. A batch marker of `batch` or
    less was committed before any task of `batch` began: while it is there, a task marker that is not there was never
    committed.
    """
    known = [marker.next_batch for marker in (own, whole) if marker is not None]
    if not known:
        return Verdict.WRITE if batch == 0 else Verdict.LOST
    return Verdict.SKIP if max(known) > batch else Verdict.WRITE


class Ledger:
    """The markers of one cluster."""

    def __init__(self, client: blocking.Client, topic: str) -> None:
        self._client = client
        self._topic = topic

    def prepare(self) -> None:
        """See to it that the topic is there: offsets are committed for partitions that exist."""
        cluster = self._client.cluster
        cluster.want([self._topic])
        self._client.run(retrying(cluster, lambda: refresh(cluster), REQUEST_TIMEOUT_MS))
        if self._topic not in cluster.topics:
            self._create()
        count = len(self._client.cluster.topics[self._topic].partitions)
        if count < PARTITIONS:
            raise SinkError(
                f"the topic {self._topic} has {count} partitions, and the sink keeps its markers in {PARTITIONS}: "
                f"give it as many, or name another topic by the option markerTopic"
            )

    def _create(self) -> None:
        wanted = admin.NewTopic(self._topic, PARTITIONS)
        try:
            self._client.run(admin.create_topics(self._client.cluster, [wanted]))
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another task was quicker
                raise SinkError(
                    f"the topic {self._topic}, in which the sink keeps its markers, does not exist and cannot be made "
                    f"({error}): create it with {PARTITIONS} partitions, or name another by the option markerTopic"
                ) from error
        self._client.cluster.mark_stale()
        self._client.run(know_topics(self._client.cluster, [self._topic], timeout_ms=LOOK_AROUND_MS))

    def read(self, place: Place, *, stable: bool) -> Marker | None:
        """`stable` waits for transactions that are just ending; else what is committed by now, which may be older."""
        partition = TopicPartition(self._topic, place.partition)
        found = self._client.run(
            fetch_offsets(self._client.cluster, place.group, [partition], require_stable=stable)
        ).get(partition)
        return None if found is None else Marker.of(found)

    def offsets(self, place: Place, marker: Marker) -> dict[str, dict[TopicPartition, Committed]]:
        """As a transaction commits them."""
        return {place.group: {TopicPartition(self._topic, place.partition): marker.committed()}}

    def commit(self, place: Place, marker: Marker) -> None:
        """Outside of any transaction: the batch marker."""
        offsets = {TopicPartition(self._topic, place.partition): marker.committed()}
        self._client.run(commit_offsets(self._client.cluster, GroupMember(place.group), offsets))
