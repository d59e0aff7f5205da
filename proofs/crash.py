"""Ten million records through one broker that is killed ten times on the way, idempotent producers: every acked record
is there once, in order.

Each partition has one producer, which sends 0, 1, 2, ...; the reader must find exactly that. The kills come spread over
the load, each at a moment that nobody prepares for.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.ports import free_port
from proofs.processes import BrokerProcess

TOPIC = "crash"


class Writer(threading.Thread):
    """Sends one partition's numbers, keeps count of what was acked."""

    def __init__(self, address: str, partition: int, count: int) -> None:
        super().__init__(name=f"writer-{partition}", daemon=True)
        self.partition = partition
        self.count = count
        self.acked = 0
        self.faults: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "queue.buffering.max.messages": 200_000,
                "message.timeout.ms": 300_000,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "log_level": 2,
            }
        )

    def run(self) -> None:
        for number in range(self.count):
            while True:
                try:
                    self._producer.produce(
                        TOPIC, value=b"%d" % number, partition=self.partition, on_delivery=self._delivered
                    )
                    break
                except BufferError:
                    self._producer.poll(0.05)
            if number % 1000 == 0:
                self._producer.poll(0)
        left = self._producer.flush(300)
        if left:
            self.faults.append(f"{left} records were never answered")

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.faults.append(str(error))
        else:
            self.acked += 1


def run(records: int = 10_000_000, kills: int = 10, partitions: int = 4, seed: int = 1) -> dict[str, object]:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="penstock-crash-") as scratch:
        broker = BrokerProcess(Path(scratch) / "data", free_port())
        broker.directory.mkdir()
        broker.start()
        try:
            return _run(broker, chance, records, kills, partitions)
        finally:
            broker.kill()


def _run(broker: BrokerProcess, chance: random.Random, records: int, kills: int, partitions: int) -> dict[str, object]:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(30)
    started = time.monotonic()
    each = records // partitions
    writers = [Writer(broker.address, partition, each) for partition in range(partitions)]
    for writer in writers:
        writer.start()
    restarts = []
    for kill in range(kills):
        _wait_until(writers, (kill + chance.uniform(0.3, 0.9)) * records / (kills + 1))
        broker.kill()
        begun = time.monotonic()
        broker.start()
        restarts.append(time.monotonic() - begun)
    for writer in writers:
        writer.join()
    produced_s = time.monotonic() - started
    faults = [fault for writer in writers for fault in writer.faults]
    assert not faults, f"{len(faults)} records failed, the first: {faults[0]}"
    found = _verify(broker.address, partitions, each)
    return {
        "records": found,
        "acked": sum(writer.acked for writer in writers),
        "kills": kills,
        "lost": 0,
        "duplicated": 0,
        "out_of_order": 0,
        "produce_seconds": round(produced_s, 1),
        "restart_seconds_max": round(max(restarts), 2) if restarts else None,
    }


def _wait_until(writers: list[Writer], acked: float) -> None:
    deadline = time.monotonic() + 600
    while sum(writer.acked for writer in writers) < acked and any(writer.is_alive() for writer in writers):
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {sum(writer.acked for writer in writers)} records were acked in ten minutes")
        time.sleep(0.005)


def _verify(address: str, partitions: int, each: int) -> int:
    """Read everything: partition by partition exactly 0, 1, 2, ... up to what was acked."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "verify", "enable.auto.commit": False, "log_level": 2,
         "enable.partition.eof": False, "queued.max.messages.kbytes": 65_536}
    )  # fmt: skip
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(partitions)])
    expected = [0] * partitions
    total = 0
    try:
        while total < each * partitions:
            messages = consumer.consume(10_000, timeout=30)
            if not messages:
                raise AssertionError(f"records are missing: {expected} of {each} in each partition")
            for message in messages:
                if message.error():
                    raise KafkaException(message.error())
                partition = message.partition()
                number = int(message.value())
                if number != expected[partition]:
                    raise AssertionError(f"partition {partition}: {number} where {expected[partition]} should be")
                expected[partition] = number + 1
            total += len(messages)
        extra = consumer.consume(1, timeout=2)
        assert not extra, f"there is a record too many: {extra[0].value()!r}"
    finally:
        consumer.close()
    return total
