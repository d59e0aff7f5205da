"""One hour of steady load: memory flat, file descriptors flat.

A producer and a consumer group run beside each other the whole time, and every minute a topic is made, used by a group
of its own and deleted, for what leaks does so at the edges. Flat: the last quarter's median is not above the second
quarter's by more than a tenth (the first quarter warms up). A partition in use holds its file open: here
`__consumer_offsets` has few partitions, so that all of them are in use from the start and only what leaks can grow.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.ports import free_port
from proofs.processes import BrokerProcess

TOPIC = "steady"
RATE_PER_S = 10_000
VALUE = b"x" * 200
GROWTH_ALLOWED = 1.10
DESCRIPTORS_ALLOWED = 8


class Load:
    """A producer at a fixed rate and a consumer that follows it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sent = 0
        self.received = 0
        self.faults: list[str] = []
        self.stop = threading.Event()
        self._threads = [threading.Thread(target=self._produce), threading.Thread(target=self._consume)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(60)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 10, "log_level": 2})
        while not self.stop.wait(0.05):
            for _ in range(RATE_PER_S // 20):
                producer.produce(TOPIC, VALUE, on_delivery=self._delivered)
            producer.poll(0)
        producer.flush(30)

    def _delivered(self, error: object, _message: object) -> None:
        if error is not None:
            self.faults.append(str(error))
        else:
            self.sent += 1

    def _consume(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self.address, "group.id": "steady", "auto.offset.reset": "earliest", "log_level": 2}
        )
        consumer.subscribe([TOPIC])
        while not self.stop.is_set():
            self.received += sum(message.error() is None for message in consumer.consume(5000, 0.5))
        consumer.close()


def run(seconds: int = 3600, sample_s: int = 10, churn_s: int = 60) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="penstock-steady-") as scratch:
        settings = {
            "log_retention_bytes": "268435456",
            "log_segment_bytes": "67108864",
            "log_retention_check_interval_ms": "10000",
            "log_segment_delete_delay_ms": "1000",
            "offsets_topic_num_partitions": "4",
        }
        broker = BrokerProcess(Path(scratch) / "data", free_port(), **settings)
        broker.directory.mkdir()
        broker.start()
        try:
            return _run(broker, seconds, sample_s, churn_s)
        finally:
            broker.kill()


def _run(broker: BrokerProcess, seconds: int, sample_s: int, churn_s: int) -> dict[str, object]:
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 2})
    admin.create_topics([NewTopic(TOPIC, 4, 1)])[TOPIC].result(30)
    memory, descriptors = [], []
    began, cpu_before = time.monotonic(), broker.cpu_seconds()
    with Load(broker.address) as load:
        turn = 0
        while time.monotonic() - began < seconds:
            time.sleep(sample_s)
            memory.append(broker.resident_bytes())
            descriptors.append(broker.open_files())
            turn += 1
            if turn % max(1, churn_s // sample_s) == 0:
                _churn(broker.address, admin, turn)
        cpu = broker.cpu_seconds() - cpu_before
        received, sent, faults = load.received, load.sent, load.faults
    assert not faults, f"{len(faults)} deliveries failed, the first: {faults[0]}"
    early, late = _quarter(memory, 1), _quarter(memory, 3)
    files_early, files_late = _quarter(descriptors, 1), _quarter(descriptors, 3)
    figures = {
        "seconds": round(time.monotonic() - began),
        "sent": sent,
        "received": received,
        "broker_cpu_share": round(cpu / (time.monotonic() - began), 3),
        "memory_mb_second_quarter": round(early / 1e6, 1),
        "memory_mb_last_quarter": round(late / 1e6, 1),
        "memory_mb_max": round(max(memory) / 1e6, 1),
        "descriptors_second_quarter": files_early,
        "descriptors_last_quarter": files_late,
    }
    assert late <= early * GROWTH_ALLOWED, f"memory grows: {figures}"
    assert files_late <= files_early + DESCRIPTORS_ALLOWED, f"descriptors grow: {figures}"
    assert received >= sent * 0.99 - RATE_PER_S * 2, f"the consumer fell behind: {figures}"
    return figures


def _churn(address: str, admin: AdminClient, turn: int) -> None:
    """A topic's and a group's whole life."""
    name = f"passing-{turn}"
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)
    producer = Producer({"bootstrap.servers": address, "log_level": 2})
    for number in range(100):
        producer.produce(name, b"%d" % number)
    producer.flush(30)
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": name, "auto.offset.reset": "earliest", "log_level": 2}
    )
    consumer.subscribe([name])
    seen, deadline = 0, time.monotonic() + 30
    while seen < 100 and time.monotonic() < deadline:
        seen += len(consumer.consume(100, 1))
    consumer.close()
    assert seen == 100, f"{name}: {seen} of 100 records arrived"
    admin.delete_consumer_groups([name])[name].result(30)
    admin.delete_topics([name])[name].result(30)


def _quarter(samples: list[int], number: int) -> float:
    size = max(1, len(samples) // 4)
    return statistics.median(samples[number * size : (number + 1) * size] or samples[-1:])
