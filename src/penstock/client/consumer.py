"""`Consumer`: reads records, alone or as a member of a group.

A record counts as processed when the next one is asked for, or when the consumer closes without an error: so what is
committed in the background was handled, and what was being handled when a process died is delivered again (at least
once).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, Literal, Self

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, KafkaException, Message
from confluent_kafka import Consumer as LibraryConsumer
from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import TopicPartition as LibraryPartition

from penstock.base.ids import TopicPartition
from penstock.client.errors import ClientError, DeserializationError, from_exception, from_library, is_retriable
from penstock.client.metrics import INTERVAL_MS, Counters, consumer_metrics
from penstock.client.records import K, Record, V
from penstock.client.serializers import Bytes, Deserializer
from penstock.client.settings import Config, Faults, log, properties, refused

Partition = tuple[str, int]
Offset = int | Literal["start", "end"]
OnRebalance = Callable[[list[TopicPartition]], None]

BUFFERED_MAX = 500
"""records taken from the library at once."""

STORE_EVERY_S = 1.0
"""how often the offsets of processed records are handed to the library, which commits them in the background."""

SEEK_TIMEOUT_S = 10.0
_LOGICAL = {"start": OFFSET_BEGINNING, "end": OFFSET_END}
_NO_GROUP = "penstock.no-group"


class Consumer(Generic[K, V]):
    """`with Consumer("localhost:9092", topics=["orders"], group="billing") as c: for record in c: ...`

    Without a group it reads all partitions of its topics by itself and commits nothing. `start_at` says where to
    begin where the group has no offset yet (with a group) or always (without).
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        topics: Iterable[str] = (),
        group: str | None = None,
        key: Deserializer[K] | None = None,
        value: Deserializer[V] | None = None,
        start_at: Literal["earliest", "latest", "error"] = "earliest",
        auto_commit: bool = True,
        isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
        config: Config | None = None,
    ) -> None:
        self.group = group
        defaults = {
            "group.id": group or _NO_GROUP,
            "auto.offset.reset": start_at,
            "enable.auto.commit": auto_commit and group is not None,
            "enable.auto.offset.store": False,
            "isolation.level": isolation,
            "statistics.interval.ms": INTERVAL_MS,
        }
        self._start_at: Offset = "end" if start_at == "latest" else "start"
        self._key: Deserializer[Any] = key or Bytes()
        self._value: Deserializer[Any] = value or Bytes()
        self._counters = Counters()
        self._faults = Faults()
        self._buffer: deque[Message] = deque()
        self._positions: dict[TopicPartition, int] = {}
        self._unstored: dict[TopicPartition, int] = {}
        self.at_end: set[TopicPartition] = set()
        self._stored_at = 0.0
        self._closed = False
        callbacks = {
            "error_cb": self._faults,
            "stats_cb": self._counters.stats,
            "on_commit": _log_failed_commit,
            "logger": log,
        }
        try:
            self._consumer = LibraryConsumer(properties(bootstrap_servers, defaults, config) | callbacks)
        except (KafkaException, TypeError, ValueError) as exc:
            raise refused(exc, "make a consumer") from exc
        if wanted := list(topics):
            self.subscribe(wanted)

    def subscribe(
        self, topics: Iterable[str], on_assign: OnRebalance | None = None, on_revoke: OnRebalance | None = None
    ) -> None:
        """Joins the group for these topics ("^..." is a pattern).

        Without a group: takes all their partitions at once.
        """
        names = list(topics)
        if self.group is None:
            everything = [t for name in names for t in self.partitions_for(name)]
            self.assign(dict.fromkeys(everything, self._start_at))
            return
        callbacks: dict[str, Any] = {"on_revoke": self._revoked(on_revoke)}
        if on_assign is not None:
            callbacks["on_assign"] = lambda _, partitions: on_assign([_ours(p) for p in partitions])
        self._call(f"subscribe to {', '.join(names)}", lambda: self._consumer.subscribe(names, **callbacks))

    def unsubscribe(self) -> None:
        self._settle()
        self._buffer.clear()
        self._call("unsubscribe", self._consumer.unsubscribe)

    def assign(
        self, partitions: Iterable[Partition] | Mapping[Partition, Offset] | Mapping[TopicPartition, Offset]
    ) -> None:
        """Reads exactly these partitions, from the offsets given; without offsets, from the committed ones or
        `start_at`.
        """
        offsets: dict[Any, Any] = (
            dict(partitions) if isinstance(partitions, Mapping) else dict.fromkeys(partitions, self._initial())
        )
        wanted = [LibraryPartition(topic, index, _logical(offset)) for (topic, index), offset in offsets.items()]
        self._settle()
        self._buffer.clear()
        self._positions.clear()
        self._call("assign partitions", lambda: self._consumer.assign(wanted))

    def assignment(self) -> list[TopicPartition]:
        return sorted(_ours(p) for p in self._consumer.assignment())

    def partitions_for(self, topic: str, timeout_s: float = 10.0) -> list[TopicPartition]:
        doing = f"read the partitions of {topic!r}"
        found = self._call(doing, lambda: self._consumer.list_topics(topic, timeout=timeout_s)).topics[topic]
        if found.error is not None:
            raise from_library(found.error, doing)
        return [TopicPartition(topic, index) for index in sorted(found.partitions)]

    def poll(self, timeout_s: float = 1.0) -> Record[K, V] | None:
        """The next record, or None where none came in time."""
        message = self._next(timeout_s)
        return None if message is None else self._hand_out(message)

    def poll_batch(self, max_records: int = BUFFERED_MAX, timeout_s: float = 1.0) -> list[Record[K, V]]:
        """Up to `max_records` records: waits for the first, takes what else is there already."""
        found: list[Record[K, V]] = []
        while len(found) < max_records:
            message = self._next(0.0 if found else timeout_s)
            if message is None:
                break
            found.append(self._hand_out(message))
        return found

    @property
    def buffered(self) -> int:
        """Records that the next polls hand out without waiting."""
        return len(self._buffer)

    def prefetch(self, timeout_s: float) -> None:
        """Waits for records and buffers them, without handing one out."""
        self._check_open()
        self._settle()
        self._fill(timeout_s)

    def take(self, count: int, timeout_s: float = 10.0) -> list[Record[K, V]]:
        """The next `count` records; fewer where `timeout_s` passes first."""
        deadline = time.monotonic() + timeout_s
        found: list[Record[K, V]] = []
        while len(found) < count and (left := deadline - time.monotonic()) > 0:
            found += self.poll_batch(count - len(found), left)
        return found

    def __iter__(self) -> Iterator[Record[K, V]]:
        return self

    def __next__(self) -> Record[K, V]:
        """Waits as long as it takes; ends when the consumer is closed."""
        while not self._closed:
            record = self.poll(0.5)
            if record is not None:
                return record
        raise StopIteration

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        """Commits what was handed out so far, or these offsets (of the next record to read), and waits for the
        answer.
        """
        doing = f"commit offsets of the group {self.group!r}"
        self._check_group()
        self._settle()
        try:
            if offsets is None:
                done = self._consumer.commit(asynchronous=False)
            else:
                done = self._consumer.commit(offsets=_theirs(offsets), asynchronous=False)
        except KafkaException as exc:
            if exc.args[0].code() == LibraryError._NO_OFFSET:
                return {}
            raise from_exception(exc, doing) from exc
        for partition in done or ():
            if partition.error is not None:
                raise from_library(partition.error, doing)
        return {_ours(p): p.offset for p in done or ()}

    def commit_async(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Like `commit`, without waiting; a failure is logged."""
        self._check_group()
        self._settle()
        try:
            if offsets is None:
                self._consumer.commit(asynchronous=True)
            else:
                self._consumer.commit(offsets=_theirs(offsets), asynchronous=True)
        except KafkaException as exc:
            if exc.args[0].code() != LibraryError._NO_OFFSET:
                raise from_exception(exc, f"commit offsets of the group {self.group!r}") from exc

    def committed(
        self, partitions: Iterable[Partition] | None = None, timeout_s: float = 10.0
    ) -> dict[TopicPartition, int]:
        """The group's committed offsets; partitions without one are left out."""
        self._check_group()
        asked = [LibraryPartition(t, p) for t, p in (self.assignment() if partitions is None else partitions)]
        found = self._call("read committed offsets", lambda: self._consumer.committed(asked, timeout=timeout_s))
        return {_ours(p): p.offset for p in found if p.offset >= 0}

    def seek(self, partition: Partition, offset: Offset) -> None:
        """The next record of this partition is the one at `offset`."""
        target = TopicPartition(*partition)
        self._settle()
        self._drop(target)
        deadline = time.monotonic() + SEEK_TIMEOUT_S
        while True:
            try:
                self._consumer.seek(LibraryPartition(*target, _logical(offset)))
                break
            except KafkaException as exc:
                # A partition that was assigned a moment ago cannot be positioned until the library has started on it.
                if exc.args[0].code() != LibraryError._STATE or time.monotonic() > deadline:
                    raise from_exception(exc, f"seek in {target}") from exc
                self._fill(0.05)
                self._drop(target)
        if isinstance(offset, int):
            self._positions[target] = offset
        else:
            self._positions.pop(target, None)

    def position(self, partition: Partition) -> int | None:
        """The offset of the next record to be handed out, or None before the first."""
        target = TopicPartition(*partition)
        if target in self._positions:
            return self._positions[target]
        (found,) = self._consumer.position([LibraryPartition(*target)])
        return found.offset if found.offset >= 0 else None

    def positions(self) -> dict[TopicPartition, int]:
        """Of all assigned partitions of which something was read."""
        return {t: at for t in self.assignment() if (at := self.position(t)) is not None}

    def bounds(self, partition: Partition, timeout_s: float = 10.0) -> tuple[int, int]:
        """(first offset, end offset) of a partition, from its leader."""
        doing = f"read the offsets of {TopicPartition(*partition)}"
        low, high = self._call(
            doing, lambda: self._consumer.get_watermark_offsets(LibraryPartition(*partition), timeout=timeout_s)
        )
        return low, high

    def offsets_for_time(
        self, partitions: Iterable[Partition], timestamp_ms: int, timeout_s: float = 10.0
    ) -> dict[TopicPartition, int | None]:
        """The first offset whose record is at least as young as `timestamp_ms`; None where there is none yet."""
        asked = [LibraryPartition(t, p, timestamp_ms) for t, p in partitions]
        found = self._call("find offsets by time", lambda: self._consumer.offsets_for_times(asked, timeout=timeout_s))
        return {_ours(p): p.offset if p.offset >= 0 else None for p in found}

    def pause(self, partitions: Iterable[Partition]) -> None:
        wanted = [TopicPartition(*p) for p in partitions]
        self._call("pause", lambda: self._consumer.pause([LibraryPartition(*t) for t in wanted]))
        for target in wanted:
            first = self._drop(target)
            if first is not None:
                self.seek(target, first)

    def resume(self, partitions: Iterable[Partition]) -> None:
        self._call("resume", lambda: self._consumer.resume([LibraryPartition(*p) for p in partitions]))

    def group_metadata(self) -> object:
        """What `Producer.send_offsets` tells the coordinator about this member."""
        return self._consumer.consumer_group_metadata()

    def metrics(self) -> dict[str, float]:
        return consumer_metrics(self._counters)

    def close(self) -> None:
        """Commits what was handed out (with auto_commit), leaves the group, lets go of the connections.

        Safe to repeat.
        """
        self._close(processed=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(processed=exc is None)

    def _close(self, *, processed: bool) -> None:
        if self._closed:
            return
        self._closed = True
        if processed:
            self._settle()
        self._buffer.clear()
        self._call("close the consumer", self._consumer.close)

    def _next(self, timeout_s: float) -> Message | None:
        self._check_open()
        if not self._buffer:
            self._settle()
            self._fill(timeout_s)
        elif self._unstored and time.monotonic() - self._stored_at > STORE_EVERY_S:
            self._settle()
        return self._buffer.popleft() if self._buffer else None

    def _check_open(self) -> None:
        if self._closed:
            raise ClientError("the consumer is closed; make a new one to go on reading")

    def _check_group(self) -> None:
        if self.group is None:
            raise ClientError("a consumer without a group has no committed offsets; make it with group=...")

    def _fill(self, timeout_s: float) -> None:
        self._faults.raise_fatal()
        first = self._consumer.poll(timeout_s)
        if first is None:
            return
        # What is there already comes in one call: a call per record would cost more than the record.
        for message in [first, *self._consumer.consume(BUFFERED_MAX - 1, 0)]:
            error = message.error()
            if error is None:
                self._buffer.append(message)
                self.at_end.discard(TopicPartition(message.topic() or "", message.partition() or 0))
            else:
                self._weigh(error, message)

    def _weigh(self, error: LibraryError, message: Message) -> None:
        if error.code() == LibraryError._PARTITION_EOF:
            self.at_end.add(TopicPartition(message.topic() or "", message.partition() or 0))
            return
        if is_retriable(error.code()) and not error.fatal():
            log.warning("%s", error.str())
            return
        raise from_library(error, f"read {message.topic() or 'records'}")

    def _hand_out(self, message: Message) -> Record[K, V]:
        topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
        target = TopicPartition(topic, partition)
        self._positions[target] = self._unstored[target] = offset + 1
        kind, timestamp_ms = message.timestamp()
        key, value = message.key(), message.value()
        self._counters.records += 1
        self._counters.bytes += len(key or b"") + len(value or b"")
        headers: Any = message.headers()
        return Record(
            topic,
            partition,
            offset,
            timestamp_ms if kind else -1,
            None if key is None else self._read(self._key, "key", key, target, offset),
            None if value is None else self._read(self._value, "value", value, target, offset),
            tuple(headers) if headers else (),
            kind == 2,
            message.leader_epoch(),
        )

    def _read(self, deserializer: Deserializer[Any], part: str, data: bytes, at: TopicPartition, offset: int) -> Any:
        try:
            return deserializer.deserialize(data)
        except Exception as exc:
            self._counters.errors += 1
            raise DeserializationError(part, at.topic, at.partition, offset, data, str(exc)) from exc

    def _settle(self) -> None:
        """Everything handed out so far is processed: the library may commit it."""
        self._stored_at = time.monotonic()
        processed, self._unstored = self._unstored, {}
        for target, offset in processed.items() if self.group is not None else ():
            try:
                self._consumer.store_offsets(offsets=[LibraryPartition(*target, offset)])
            except KafkaException as exc:
                log.debug("%s is no longer ours: %s", target, exc)

    def _drop(self, target: TopicPartition) -> int | None:
        """Forgets what is buffered of a partition; the offset of the first record dropped."""
        dropped = [m for m in self._buffer if (m.topic(), m.partition()) == target]
        if not dropped:
            return None
        self._buffer = deque(m for m in self._buffer if (m.topic(), m.partition()) != target)
        return dropped[0].offset()

    def _revoked(self, on_revoke: OnRebalance | None) -> Callable[[Any, list[LibraryPartition]], None]:
        def revoked(_: Any, partitions: list[LibraryPartition]) -> None:
            for partition in partitions:
                self._drop(_ours(partition))
                self._positions.pop(_ours(partition), None)
            if on_revoke is not None:
                on_revoke([_ours(p) for p in partitions])

        return revoked

    def _initial(self) -> Offset:
        return OFFSET_INVALID if self.group is not None else self._start_at

    def _call(self, doing: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaException as exc:
            raise from_exception(exc, doing) from exc
        except RuntimeError as exc:
            raise ClientError(f"cannot {doing}: {exc}") from exc


def _ours(partition: LibraryPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


def _theirs(offsets: Mapping[TopicPartition, int]) -> list[LibraryPartition]:
    return [LibraryPartition(topic, index, offset) for (topic, index), offset in offsets.items()]


def _logical(offset: Offset) -> int:
    return _LOGICAL[offset] if isinstance(offset, str) else offset


def _log_failed_commit(error: LibraryError | None, partitions: list[LibraryPartition]) -> None:
    if error is not None and error.code() != LibraryError._NO_OFFSET:
        log.warning("a commit failed: %s", error.str())
