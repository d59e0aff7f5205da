"""Producers and consumers that write down what they did and what they were answered, while something breaks.

Every producer is idempotent and sends unique values to all partitions, a batch at a time; readers with partitions of
their own read everything from the beginning; a group shares the topic. What they saw is a history for the checker.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from penstock.sim.check.history import History, Operation, Poll, Send
from proofs.cluster_view import QUIET, wait_until

BATCH = 5
"""records that a producer sends to each partition at a time"""
REPORT_TIMEOUT_S = 120.0
IMPATIENT = {
    # How long librdkafka waits for a broker that keeps its connection open and says nothing: a minute by default, far
    # more than a cluster needs to give its partitions to others.
    "socket.timeout.ms": 6000,
    # And for one that does not take its connection: half a minute by default, in which it may have come back.
    "socket.connection.setup.timeout.ms": 2000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1000,
}


class Book:
    """The history that all clients write, and how recent what was acked and read is."""

    def __init__(self) -> None:
        self.history = History()
        self.failed_reports: list[str] = []
        self.poll_faults: list[str] = []
        self._lock = threading.Lock()
        self._sent_s: dict[str, float] = {}
        self._acked: dict[str, float] = defaultdict(float)
        self._read: dict[str, float] = defaultdict(float)

    def invoke(self, process: str, function: str, micros: Iterable[Send | Poll] = (), keys: Iterable[str] = ()) -> None:
        with self._lock:
            micros = list(micros)
            now = time.monotonic()
            self._sent_s.update((one.value, now) for one in micros if isinstance(one, Send))
            self.history.invoke(process, function, time.monotonic_ns(), micros, keys)  # type: ignore[arg-type]  # one of the functions

    def complete(self, process: str, type: str, micros: list[Send | Poll] | None = None) -> Operation:
        with self._lock:
            done = self.history.complete(process, type, time.monotonic_ns(), micros)  # type: ignore[arg-type]  # one of the types
        if type == "ok":
            for send in done.sends():
                self._acked[send.key] = max(self._acked[send.key], self._sent_s[send.value])
            for key, records in done.reads():
                self._read[key] = max(self._read[key], self._sent_s.get(records[-1][1], 0.0))
        return done

    def unacked_since(self, moment_s: float, keys: Iterable[str]) -> list[str]:
        """The keys in which nothing sent after that moment was acked."""
        return [key for key in keys if self._acked[key] < moment_s]

    def unread_since(self, moment_s: float, keys: Iterable[str]) -> list[str]:
        return [key for key in keys if self._read[key] < moment_s]


class Writer(threading.Thread):
    """One idempotent producer. It goes on under a new name after an outcome that it does not know."""

    def __init__(self, book: Book, bootstrap: str, topic: str, partitions: int, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._book = book
        self._topic = topic
        self._partitions = partitions
        self._life = 0
        self._sent = 0
        self._ending = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "retry.backoff.ms": 20,
                "topic.metadata.refresh.fast.interval.ms": 50,
                **IMPATIENT,
                **QUIET,
            }
        )

    def run(self) -> None:
        while not self._ending.is_set():
            self._send()

    def finish(self) -> None:
        self._ending.set()
        self.join(REPORT_TIMEOUT_S + 10)
        assert not self.is_alive(), f"{self.name} does not end"

    def _send(self) -> None:
        process = f"{self.name}.{self._life}"
        sends = []
        for _ in range(BATCH):
            for partition in range(self._partitions):
                self._sent += 1
                sends.append(Send(f"{self._topic}-{partition}", f"{self.name}-{self._sent}"))
        self._book.invoke(process, "send", sends)
        offsets: dict[str, int] = {}
        failed: list[str] = []
        for place, send in enumerate(sends):
            self._producer.produce(
                self._topic, send.value, partition=place % self._partitions, on_delivery=_reported(offsets, failed)
            )
        deadline = time.monotonic() + REPORT_TIMEOUT_S
        while len(offsets) + len(failed) < len(sends) and time.monotonic() < deadline:
            self._producer.poll(0.1)
        known: list[Send | Poll] = [send._replace(offset=offsets.get(str(send.value))) for send in sends]
        if len(offsets) == len(sends):
            self._book.complete(process, "ok", known)
            return
        self._book.failed_reports.extend(failed or ["no report"])
        self._book.complete(process, "info", known)
        self._life += 1


def _reported(offsets: dict[str, int], failed: list[str]):  # type: ignore[no-untyped-def]  # a callback of librdkafka
    def report(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(str(error))
        else:
            offsets[message.value().decode()] = message.offset()

    return report


class Reader(threading.Thread):
    """A consumer with partitions of its own from the beginning, or a member of a group."""

    def __init__(
        self, book: Book, bootstrap: str, topic: str, partitions: Iterable[int], name: str, group: bool
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.keys = [f"{topic}-{partition}" for partition in partitions]
        self._book = book
        self._topic = topic
        self._partitions = list(partitions)
        self._group = group
        self._ending = threading.Event()
        self.positions: dict[str, int] = {}
        """key: the offset after the last one read"""
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "chaos" if group else f"chaos-{name}",
                "enable.auto.commit": group,
                # A member may begin late; who has partitions of its own must never be thrown back or forward.
                "auto.offset.reset": "earliest" if group else "error",
                "fetch.wait.max.ms": 100,
                **IMPATIENT,
                **QUIET,
            }
        )

    def run(self) -> None:
        self._book.invoke(self.name, "subscribe" if self._group else "assign", keys=self.keys)
        if self._group:
            self._consumer.subscribe([self._topic])
        else:
            self._consumer.assign([TopicPartition(self._topic, partition, 0) for partition in self._partitions])
        self._book.complete(self.name, "ok")
        while not self._ending.is_set():
            self._poll()
        self._consumer.close()

    def finish(self) -> None:
        self._ending.set()
        self.join(60)
        assert not self.is_alive(), f"{self.name} does not end"

    def _poll(self) -> None:
        self._book.invoke(self.name, "poll")
        found: dict[str, list[tuple[int, str]]] = {}
        try:
            for message in self._consumer.consume(500, timeout=0.2):
                if message.error():
                    self._book.poll_faults.append(f"{self.name}: {message.error()}")
                    continue
                key = f"{message.topic()}-{message.partition()}"
                found.setdefault(key, []).append((message.offset(), message.value().decode()))
                self.positions[key] = message.offset() + 1
        except KafkaException as fault:
            self._book.poll_faults.append(f"{self.name}: {fault}")
        self._book.complete(self.name, "ok", [Poll(found)])


class Load:
    """`with Load(bootstrap, topic, partitions) as load:` everything runs; after the block everything was read."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, writers: int = 2) -> None:
        self.book = Book()
        self.bootstrap = bootstrap
        self.topic = topic
        self.keys = [f"{topic}-{partition}" for partition in range(partitions)]
        everything = range(partitions)
        self._writers = [Writer(self.book, bootstrap, topic, partitions, f"w{n}") for n in range(writers)]
        self._readers = [Reader(self.book, bootstrap, topic, everything, "r0", group=False)]
        self._readers += [Reader(self.book, bootstrap, topic, everything, f"g{n}", group=True) for n in range(2)]

    def __enter__(self) -> Load:
        for thread in [*self._writers, *self._readers]:
            thread.start()
        self.flowing(time.monotonic())
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for writer in self._writers:
            writer.finish()
        if kind is None:
            self._read_to_end()
        for reader in self._readers:
            reader.finish()

    def flowing(self, since_s: float, timeout_s: float = 60) -> tuple[float, float]:
        """Until what was sent after the moment is acked, and read, in every partition; how long that took, in s."""
        book, keys = self.book, self.keys
        try:
            wait_until(lambda: not book.unacked_since(since_s, keys), "producers are not acked again", timeout_s)
            acked_s = time.monotonic() - since_s
            wait_until(lambda: not book.unread_since(since_s, keys), "consumers do not read on", timeout_s)
        except AssertionError as fault:
            raise AssertionError(f"{fault}: {self._state(since_s)}") from None
        return round(acked_s, 2), round(time.monotonic() - since_s, 2)

    def _state(self, since_s: float) -> dict[str, object]:
        """For whoever has to find out why nothing flows."""
        return {
            "unacked": self.book.unacked_since(since_s, self.keys),
            "unread": self.book.unread_since(since_s, self.keys),
            "positions": {reader.name: reader.positions for reader in self._readers},
            "alive": [thread.name for thread in [*self._writers, *self._readers] if thread.is_alive()],
            "failed_reports": self.book.failed_reports[-3:],
            "poll_faults": self.book.poll_faults[-3:],
        }

    def _read_to_end(self) -> None:
        reader = self._readers[0]
        probe = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "probe", **QUIET})
        try:
            for partition, key in enumerate(self.keys):
                end = _end(probe, TopicPartition(self.topic, partition))
                wait_until(lambda k=key, e=end: reader.positions.get(k, 0) >= e, f"{key} is not read to {end}", 60)  # type: ignore[misc]  # the defaults bind the loop's values
        finally:
            probe.close()


def _end(probe: Consumer, partition: TopicPartition) -> int:
    """Where it ends. librdkafka does not ask again where the leader has moved a moment ago."""
    ends: list[int] = []

    def ask() -> bool:
        ends.append(probe.get_watermark_offsets(partition, timeout=30)[1])
        return True

    wait_until(ask, f"{partition.topic}-{partition.partition} does not tell where it ends", 60)
    return ends[0]
