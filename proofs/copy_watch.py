"""What goes into a topic and what comes out of its copy: every number is expected once, in order."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from proofs.cluster_load import IMPATIENT
from proofs.cluster_view import QUIET
from proofs.copy_loop import PREFIX


class Feeder(threading.Thread):
    """Writes the numbers 0, 1, 2, ... to every partition, one after the other, until it is told to end."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, pause_s: float = 0.05) -> None:
        super().__init__(name="feeder", daemon=True)
        self._topic = topic
        self._partitions = partitions
        self._pause_s = pause_s
        self._rounds = 0
        self._failed: list[str] = []
        self._ending = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **IMPATIENT, **QUIET}
        )

    def __enter__(self) -> Feeder:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()

    @property
    def rounds(self) -> int:
        """How many numbers were sent to each partition, though some may be on their way."""
        return self._rounds

    def run(self) -> None:
        while not self._ending.is_set():
            for partition in range(self._partitions):
                value = str(self._rounds).encode()
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._report)
            self._rounds += 1
            self._producer.poll(0)
            time.sleep(self._pause_s)

    def finish(self) -> int:
        """How many numbers are in each partition, all of them acked."""
        self._ending.set()
        self.join(60)
        assert not self.is_alive() and self._producer.flush(120) == 0, "not everything was acked"
        assert not self._failed, f"the feeder's records were refused: {self._failed[:3]}"
        return self._rounds

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(str(error))


class Copies(threading.Thread):
    """Reads what is committed of the copy, from its beginning, and holds it against what is expected next."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(name="copies", daemon=True)
        self.read = [0] * partitions
        """how many numbers came out of each partition, each the one after the last"""
        self.fault: str | None = None
        self._ending = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"judge-of-{topic}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                **IMPATIENT,
                **QUIET,
            }
        )
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])

    def __enter__(self) -> Copies:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()

    def run(self) -> None:
        while not self._ending.is_set() and self.fault is None:
            with suppress(KafkaException):
                for message in self._consumer.consume(500, timeout=0.2):
                    if message.error() is None:
                        self._see(message)
        self._consumer.close()

    def finish(self) -> None:
        self._ending.set()
        self.join(60)
        assert not self.is_alive(), "the reader of the copy does not end"

    def is_past(self, rounds: int) -> bool:
        """Whether more than so many have come out of every partition."""
        assert self.fault is None, self.fault
        return min(self.read) > rounds

    def _see(self, message: Message) -> None:
        partition, expected = message.partition(), PREFIX + str(self.read[message.partition()]).encode()
        if message.value() == expected:
            self.read[partition] += 1
        elif self.fault is None:
            self.fault = f"partition {partition}, offset {message.offset()}: {message.value()!r} and not {expected!r}"


def judge(bootstrap: str, topic: str, partitions: int, rounds: int, limit_s: float = 60) -> None:
    """With fresh eyes: exactly the numbers 0 to `rounds` - 1 in every partition, in order, and nothing behind them."""
    copies = Copies(bootstrap, topic, partitions)
    copies.start()
    deadline = time.monotonic() + limit_s
    while not copies.is_past(rounds - 1):
        assert time.monotonic() < deadline, f"of {rounds} there are {copies.read}"
        time.sleep(0.05)
    time.sleep(1)  # what is one too many would come now
    copies.finish()
    assert copies.fault is None and copies.read == [rounds] * partitions, f"{rounds}: {copies.read}, {copies.fault}"
