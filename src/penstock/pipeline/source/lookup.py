"""What the cluster has: the partitions of a subscription, where they begin and end, and which offset a time is at.

`Lookup` belongs to the driver. Its client is made when it is first needed, so that a reader can be pickled before.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.pipeline.source.bounds import AtEdge, AtOffsets, AtTime, AtTimes, Bound, BoundError, check_complete
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.source.positions import Offsets
from penstock.pipeline.source.subscription import Assigned, Pattern, Subscription
from penstock.wire.blocking import Client
from penstock.wire.cluster import Topic
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Conversation
from penstock.wire.group_offsets import commit_offsets
from penstock.wire.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from penstock.wire.routes import refresh, retrying
from penstock.wire.transactions import Committed, GroupMember

T = TypeVar("T")

METADATA_AGE_MS = 1_000
"""New topics and partitions are found within this time."""
GRACE_MS = 2_000
"""A topic that was just made may not be known to every broker yet."""
OFFSETS_TIMEOUT_MS = 10_000
SILENT = (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)
COMMIT_TIMEOUT_MS = 5_000


class TopicMissing(ValueError):
    """A topic or partition that was named does not exist."""


class Lookup:
    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client: Client | None = None
        self._refreshed_s = 0.0
        self._answered = False
        """Whether the cluster ever has. One that has may be starting again; else the address may be wrong."""

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_client": None, "_refreshed_s": 0.0, "_answered": False}

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def partitions(self, *, required: bool) -> list[TopicPartition]:
        """What the subscription covers now. `required`: a topic or partition that was named and is not there is an
        error; a pattern may match nothing."""
        deadline_s = time.monotonic() + GRACE_MS / 1000
        while True:
            topics = self._topics()
            found, missing = _covered(self._options.subscription, topics)
            if not missing or not required:
                return found
            if time.monotonic() >= deadline_s:
                raise TopicMissing(self._missing_text(missing[0]))
            self._refreshed_s = 0.0
            time.sleep(0.05)

    def topic_ids(self, partitions: Iterable[TopicPartition]) -> dict[str, str]:
        """Of the topics of these partitions, which were just found. Brokers before Kafka 2.8 give none."""
        topics = self._connected().cluster.topics
        found = {name: topics[name].topic_id for name in sorted({one.topic for one in partitions}) if name in topics}
        return {name: topic_id.hex() for name, topic_id in found.items() if any(topic_id)}

    def forget(self) -> None:
        """Ask anew about topics next time: something we knew turned out to be wrong."""
        self._refreshed_s = 0.0

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._offsets(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Up to where a reader of this isolation may read."""
        return self._offsets(dict.fromkeys(partitions, LATEST))

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset whose record is of that time or later; None where there is no such record."""
        return {one: offset if offset >= 0 else None for one, offset in self._offsets(times_ms).items()}

    def resolve(self, side: str, bound: Bound, partitions: list[TopicPartition], *, or_latest: bool) -> Offsets:
        """Offsets that the "starting" or "ending" bound stands for today. `or_latest`: a time that no record has
        reached stands for the end; else it is an error."""
        match bound:
            case AtEdge(edge):
                return self._offsets(dict.fromkeys(partitions, edge))
            case AtOffsets(named):
                check_complete(f"{side}Offsets", named, partitions)
                asked = self._offsets({one: named[one] for one in partitions if named[one] < 0})
                return {one: asked.get(one, named[one]) for one in partitions}
            case AtTime(timestamp_ms):
                return self._at_times_or(f"{side}Timestamp", dict.fromkeys(partitions, timestamp_ms), or_latest)
            case AtTimes(times_ms):
                check_complete(f"{side}OffsetsByTimestamp", times_ms, partitions)
                return self._at_times_or(f"{side}OffsetsByTimestamp", times_ms, or_latest)

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        committed = {partition: Committed(offset) for partition, offset in offsets.items()}
        talk = commit_offsets(self._connected().cluster, GroupMember(group_id), committed, timeout_ms=COMMIT_TIMEOUT_MS)
        self._run(talk)

    def _at_times_or(self, option: str, times_ms: Mapping[TopicPartition, int], or_latest: bool) -> Offsets:
        found = self.at_times(times_ms)
        late = [one for one, offset in found.items() if offset is None]
        if late and not or_latest:
            raise BoundError(
                f"{option}: {late[0]} has no record of {times_ms[late[0]]} ms or later; choose an earlier time, or set "
                "startingOffsetsByTimestampStrategy to latest to begin at its end"
            )
        ends = self.latest(late)
        return {one: ends[one] if offset is None else offset for one, offset in found.items()}

    def _offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        if not wanted:
            return {}
        isolation = READ_COMMITTED if self._options.isolation == "read_committed" else READ_UNCOMMITTED
        cluster = self._connected().cluster
        answer = self._patiently(
            lambda: list_offsets(cluster, wanted, isolation=isolation, timeout_ms=OFFSETS_TIMEOUT_MS)
        )
        return {partition: found.offset for partition, found in answer.items()}

    def _topics(self) -> dict[str, Topic]:
        client = self._connected()
        cluster = client.cluster
        now_s = time.monotonic()
        if now_s - self._refreshed_s >= METADATA_AGE_MS / 1000:
            every = isinstance(self._options.subscription, Pattern)
            if every:
                # An answer about all topics says nothing of those that are gone.
                cluster.topics.clear()
                cluster.names.clear()
            else:
                cluster.want(_named(self._options.subscription))
            self._patiently(lambda: retrying(cluster, lambda: refresh(cluster, all_topics=every), REQUEST_TIMEOUT_MS))
            self._refreshed_s = now_s
        return cluster.topics

    def _missing_text(self, missing: str) -> str:
        client = self._connected()
        topic, _, number = missing.partition(" partition ")
        if number:
            advice = f"`penstock topic alter {topic} -p {int(number) + 1}` adds partitions"
            return f"{missing} does not exist at {self._options.bootstrap}: {advice}"
        self._run(refresh(client.cluster, all_topics=True))
        names = sorted(name for name, topic in client.cluster.topics.items() if not topic.internal)
        close = difflib.get_close_matches(missing, names, 1)
        advice = f"did you mean {close[0]!r}?" if close else f"`penstock topic create {missing}` makes it"
        return f"{missing} does not exist at {self._options.bootstrap}: {advice}"

    def _connected(self) -> Client:
        if self._client is None:
            self._client = Client(
                self._options.bootstrap,
                client_id=self._options.client.get("client.id", "penstock-spark-driver"),
                security=self._options.security,
            )
        return self._client

    def _patiently(self, ask: Callable[[], Conversation[T]]) -> T:
        """Asked again while a cluster that has answered before is silent, for as long as Kafka's own consumers wait:
        a stream is to outlive brokers that are started again."""
        deadline_s = time.monotonic() + self._options.api_timeout_ms / 1000
        while True:
            try:
                answer = self._run(ask())
            except KafkaError as error:
                if not self._answered or error.code not in SILENT or time.monotonic() >= deadline_s:
                    raise
            else:
                self._answered = True
                return answer

    def _run(self, talk: Conversation[T]) -> T:
        try:
            return self._connected().run(talk)
        except KafkaError as error:
            if error.code is ErrorCode.NETWORK_EXCEPTION:
                raise KafkaError(
                    error.code, f"no broker answers at {self._options.bootstrap} ({error}): is the cluster running?"
                ) from error
            raise


def _named(subscription: Subscription) -> list[str]:
    match subscription:
        case Pattern():
            return []
        case Assigned(partitions):
            return list(dict.fromkeys(one.topic for one in partitions))
        case _:
            return list(subscription.names)


def _covered(subscription: Subscription, topics: Mapping[str, Topic]) -> tuple[list[TopicPartition], list[str]]:
    """The partitions that there are, and what was named and is not there."""
    if isinstance(subscription, Assigned):
        found = [one for one in subscription.partitions if one.topic in topics and _has(topics[one.topic], one)]
        known = frozenset(found)
        missing = [
            one.topic if one.topic not in topics else f"{one.topic} partition {one.partition}"
            for one in subscription.partitions
            if one not in known
        ]
        return found, missing
    if isinstance(subscription, Pattern):
        names = [name for name in sorted(topics) if subscription.matches(name) and not topics[name].internal]
        missing = []
    else:
        names = [name for name in subscription.names if name in topics]
        missing = [name for name in subscription.names if name not in topics]
    return sorted(TopicPartition(name, index) for name in names for index in topics[name].partitions), missing


def _has(topic: Topic, partition: TopicPartition) -> bool:
    return partition.partition in topic.partitions
