"""`Producer`: sends records, each with a future of where it landed.

By default idempotent with acks=all: a retry neither duplicates nor reorders. One daemon thread per producer serves
delivery reports; it rests while nothing is under way and ends with `close()`, or when the producer is garbage-
collected.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, Self

from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import KafkaException, Message
from confluent_kafka import Producer as LibraryProducer
from confluent_kafka import TopicPartition as LibraryPartition

from penstock.base.ids import TopicPartition
from penstock.client.consumer import Consumer
from penstock.client.errors import ClientError, SerializationError, TopicNotFound, from_exception, from_library
from penstock.client.metrics import INTERVAL_MS, Counters, producer_metrics
from penstock.client.partitioners import Hash, Partitioner
from penstock.client.records import HeadersInput, K, RecordMetadata, V, headers_to_pairs
from penstock.client.serializers import Bytes, Serializer
from penstock.client.settings import Config, Faults, log, properties, refused

OnDelivery = Callable[[RecordMetadata | None, ClientError | None], None]

PARTITIONS_REFRESH_S = 30.0
"""how long the number of a topic's partitions is believed by round-robin and custom partitioners."""

PURGE_S = 2.0
"""at most, for the reports of records that are given up"""


class Producer(Generic[K, V]):
    """`with Producer("localhost:9092") as p: p.send("orders", b"...").result()`"""

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str] | None = None,
        *,
        key: Serializer[K] | None = None,
        value: Serializer[V] | None = None,
        acks: int | str = "all",
        idempotent: bool | None = None,
        compression: str | None = None,
        transactional_id: str | None = None,
        partitioner: Hash | Partitioner | None = None,
        max_block_s: float = 60.0,
        config: Config | None = None,
    ) -> None:
        defaults = {
            "acks": acks,
            "enable.idempotence": acks in ("all", -1, "-1") if idempotent is None else idempotent,
            "compression.type": compression,
            "transactional.id": transactional_id,
            "partitioner": "murmur2_random",
            "statistics.interval.ms": INTERVAL_MS,
        }
        self._key: Serializer[Any] = key or Bytes()
        self._value: Serializer[Any] = value or Bytes()
        self._partitioner = None if isinstance(partitioner, Hash) else partitioner
        self._max_block_s = max_block_s
        self._counters = Counters()
        self._faults = Faults()
        self._partitions: dict[str, tuple[float, int]] = {}
        self._closed = False
        callbacks = {"error_cb": self._faults, "stats_cb": self._counters.stats, "logger": log}
        try:
            self._producer = LibraryProducer(properties(bootstrap_servers, defaults, config) | callbacks)
        except (KafkaException, TypeError, ValueError) as exc:
            raise refused(exc, "make a producer") from exc
        self._busy = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_serve, args=(self._producer, self._busy, self._stop), name="penstock-producer", daemon=True
        )
        self._thread.start()
        weakref.finalize(self, _let_go, self._busy, self._stop)

    def send(
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        headers: HeadersInput | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Future[RecordMetadata]:
        """Hands the record over and returns at once; the future resolves when the brokers have acknowledged it.

        Waits only while the library's queue is full, at most `max_block_s`. `on_delivery` runs on the producer's
        thread.
        """
        self._check_open()
        key_bytes = _serialize(self._key, key, "key", topic)
        value_bytes = _serialize(self._value, value, "value", topic)
        if partition is None and self._partitioner is not None:
            partition = self._choose(self._partitioner, topic, key_bytes, value_bytes)
        future: Future[RecordMetadata] = Future()
        future.set_running_or_notify_cancel()
        arguments: dict[str, Any] = {
            "value": value_bytes,
            "key": key_bytes,
            "on_delivery": _Report(future, on_delivery, self._counters),
        }
        if partition is not None:
            arguments["partition"] = partition
        if timestamp_ms is not None:
            arguments["timestamp"] = timestamp_ms
        if headers is not None:
            arguments["headers"] = headers_to_pairs(headers)
        self._enqueue(topic, arguments)
        if not self._busy.is_set():
            self._busy.set()
        return future

    def flush(self, timeout_s: float | None = None) -> int:
        """Waits until everything sent so far is acknowledged or failed; returns how many records are still under
        way.
        """
        try:
            return int(self._producer.flush(-1 if timeout_s is None else timeout_s))
        except KafkaException as exc:
            raise from_exception(exc, "flush") from exc

    def partitions_for(self, topic: str, timeout_s: float = 10.0) -> list[int]:
        """The topic's partitions, from the brokers."""
        doing = f"read the partitions of {topic!r}"
        try:
            found = self._producer.list_topics(topic, timeout=timeout_s).topics[topic]
        except KafkaException as exc:
            raise from_exception(exc, doing) from exc
        if found.error is not None:
            raise from_library(found.error, doing)
        return sorted(found.partitions)

    def metrics(self) -> dict[str, float]:
        return producer_metrics(self._counters, len(self._producer))

    def init_transactions(self, timeout_s: float = 30.0) -> None:
        """Once, before the first transaction: fences older producers of this transactional id and ends what they
        left open.
        """
        self._transact("initialise transactions", lambda: self._producer.init_transactions(timeout_s))

    def begin_transaction(self) -> None:
        self._transact("begin a transaction", self._producer.begin_transaction)

    def commit_transaction(self, timeout_s: float = 60.0) -> None:
        self._transact("commit the transaction", lambda: self._producer.commit_transaction(timeout_s))

    def abort_transaction(self, timeout_s: float = 60.0) -> None:
        self._transact("abort the transaction", lambda: self._producer.abort_transaction(timeout_s))

    def send_offsets(
        self,
        consumer: Consumer[Any, Any],
        offsets: Mapping[TopicPartition, int] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        """Commits the consumer's offsets (its positions, unless given) inside the transaction."""
        found = consumer.positions() if offsets is None else offsets
        positions = [LibraryPartition(t.topic, t.partition, offset) for t, offset in found.items()]
        group = consumer.group_metadata()
        self._transact(
            "add offsets to the transaction",
            lambda: self._producer.send_offsets_to_transaction(positions, group, timeout_s),
        )

    @contextmanager
    def transaction(self, timeout_s: float = 60.0) -> Iterator[Self]:
        """Begins; commits at the end of the block, or aborts where it raises.

        A commit that fails but may be undone is aborted.
        """
        self.begin_transaction()
        try:
            yield self
        except BaseException:
            self.abort_transaction(timeout_s)
            raise
        try:
            self.commit_transaction(timeout_s)
        except ClientError as error:
            if error.requires_abort:
                self.abort_transaction(timeout_s)
            raise

    def close(self, timeout_s: float | None = None) -> None:
        """Flushes, then lets go of connections and thread.

        Records that miss `timeout_s` fail their futures. Safe to repeat.
        """
        if self._closed:
            return
        self._closed = True
        try:
            left = self.flush(timeout_s)
        except ClientError as error:
            # Fatal, a fenced producer say: the calls before this one have said so, and the futures fail below.
            log.debug("%s", error)
            left = len(self._producer)
        if left:
            self._purge()
        _let_go(self._busy, self._stop)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """Records sent and not yet acknowledged."""
        return len(self._producer)

    def __bool__(self) -> bool:
        return True

    def _purge(self) -> None:
        """The library's threads fail what they were sending in their own time, so that one look is not enough."""
        self._producer.purge()
        end = time.monotonic() + PURGE_S
        self._producer.poll(0)
        while len(self._producer) and time.monotonic() < end:
            self._producer.poll(0.05)

    def _check_open(self) -> None:
        if self._closed:
            raise ClientError("the producer is closed; make a new one to go on sending")
        self._faults.raise_fatal()

    def _enqueue(self, topic: str, arguments: dict[str, Any]) -> None:
        deadline: float | None = None
        while True:
            try:
                self._producer.produce(topic, **arguments)
                return
            except BufferError:
                now = time.monotonic()
                deadline = deadline or now + self._max_block_s
                if now >= deadline:
                    raise ClientError(
                        f"the producer's queue stayed full for {self._max_block_s:g} s: the brokers do not keep up; "
                        "raise queue.buffering.max.messages or send less",
                        code=LibraryError._QUEUE_FULL,
                        name="_QUEUE_FULL",
                        retriable=True,
                    ) from None
                self._producer.poll(min(0.1, deadline - now))
            except KafkaException as exc:
                raise from_exception(exc, f"send to {topic!r}") from exc

    def _choose(self, partitioner: Partitioner, topic: str, key: bytes | None, value: bytes | None) -> int:
        count = self._partition_count(topic)
        chosen = partitioner(topic, key, value, count)
        if not 0 <= chosen < count:
            raise ClientError(f"the partitioner chose {chosen} for {topic!r}, which has partitions 0 to {count - 1}")
        return chosen

    def _partition_count(self, topic: str) -> int:
        now = time.monotonic()
        known = self._partitions.get(topic)
        if known is None or now - known[0] > PARTITIONS_REFRESH_S:
            count = len(self.partitions_for(topic))
            if count == 0:
                raise TopicNotFound(f"{topic!r} has no partitions yet; try again in a moment", retriable=True)
            known = self._partitions[topic] = (now, count)
        return known[1]

    def _transact(self, doing: str, call: Callable[[], object]) -> None:
        self._check_open()
        self._busy.set()
        try:
            call()
        except KafkaException as exc:
            raise from_exception(exc, doing) from exc


class _Report:
    """The delivery report of one record: settles its future, counts, then tells the caller."""

    __slots__ = ("counters", "future", "on_delivery")

    def __init__(self, future: Future[RecordMetadata], on_delivery: OnDelivery | None, counters: Counters) -> None:
        self.future = future
        self.on_delivery = on_delivery
        self.counters = counters

    def __call__(self, error: LibraryError | None, message: Message) -> None:
        metadata: RecordMetadata | None = None
        failure: ClientError | None = None
        topic = message.topic() or ""
        if error is not None:
            self.counters.errors += 1
            number = message.partition()
            partition = TopicPartition(topic, -1 if number is None else number)
            where = repr(topic) if partition.partition < 0 else str(partition)
            failure = from_library(error, f"deliver a record to {where}")
            failure.bound_for = partition
            self.future.set_exception(failure)
        else:
            offset = message.offset()
            metadata = RecordMetadata(
                topic, message.partition() or 0, -1 if offset is None else offset, message.timestamp()[1]
            )
            self.counters.records += 1
            self.counters.bytes += len(message)
            self.future.set_result(metadata)
        if self.on_delivery is not None:
            try:
                self.on_delivery(metadata, failure)
            except Exception:
                log.exception("on_delivery raised for a record of %r", topic)


def _serialize(serializer: Serializer[Any], value: Any, part: str, topic: str) -> bytes | None:
    if value is None:
        return None
    try:
        return serializer.serialize(value)
    except Exception as exc:
        raise SerializationError(f"cannot turn the {part} of a record for {topic!r} into bytes: {exc}") from exc


def _serve(producer: LibraryProducer, busy: threading.Event, stop: threading.Event) -> None:
    """The thread: it must not hold the `Producer`, or that would never be collected."""
    while not stop.is_set():
        busy.wait(1.0)
        busy.clear()
        try:
            producer.poll(0)
            while len(producer) and not stop.is_set():
                producer.poll(0.1)
        except KafkaException as exc:
            log.debug("%s", exc)
            stop.wait(0.1)


def _let_go(busy: threading.Event, stop: threading.Event) -> None:
    stop.set()
    busy.set()
