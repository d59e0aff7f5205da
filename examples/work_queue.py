"""A work queue on a share group: many workers on one partition, jobs that fail and are tried again, dead letters.

python examples/work_queue.py

A shop resizes its pictures. Every job is done by one worker. Some fail at first: their worker releases them, and
another takes them. Two can never be done: a worker rejects the one, the other fails too often; both end in the dead
letter topic, with the reason in their headers.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from penstock.client import Admin, Consumer, NewTopic, Producer
from penstock.testing import Cluster

TOPIC, DEAD, GROUP = "pictures", "pictures.dead", "resizers"
JOBS, WORKERS = 60, 4
GROUP_CONFIG = {
    "share.auto.offset.reset": "earliest",
    "share.delivery.count.limit": "3",
    "penstock.share.dead.letter.topic": DEAD,
}
QUICK = {"group.share.heartbeat.interval.ms": "500", "group.share.min.heartbeat.interval.ms": "500"}
"""New members have their partitions sooner than by default."""


@dataclass
class Shop:
    """What the workers have to tell, gathered."""

    done: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def resize(self, picture: str) -> AcknowledgeType:
        """What becomes of the job: every fifth picture fails once, one always fails, one is no picture at all."""
        number = int(picture.removesuffix(".jpg").rpartition("-")[2])
        with self.lock:
            if number == 13:
                return AcknowledgeType.REJECT
            if number == 7 or (number % 5 == 0 and not self.failed[picture]):
                self.failed[picture] += 1
                return AcknowledgeType.RELEASE
            self.done[picture] += 1
            return AcknowledgeType.ACCEPT

    @property
    def is_done(self) -> bool:
        with self.lock:
            return len(self.done) == JOBS - 2 and self.failed["picture-7.jpg"] >= 3


def main() -> Shop:
    shop = Shop()
    with Cluster(QUICK) as cluster:
        prepare(cluster.bootstrap_servers)
        workers = [threading.Thread(target=work, args=(cluster.bootstrap_servers, shop)) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        print(f"{len(shop.done)} pictures resized, each once: {max(shop.done.values()) == 1}")
        print(f"{len(shop.failed)} failed at first, and were tried again")
        for picture, reason in dead_letters(cluster.bootstrap_servers, 2):
            print(f"given up: {picture} ({reason})")
    return shop


def prepare(servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(TOPIC, partitions=1)])
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in GROUP_CONFIG.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=entries)
    client = AdminClient({"bootstrap.servers": servers})
    for future in client.incremental_alter_configs([resource]).values():
        future.result(30)
    with Producer(servers) as producer:
        for number in range(JOBS):
            producer.send(TOPIC, f"picture-{number}.jpg".encode())


def work(servers: str, shop: Shop, limit_s: float = 60.0) -> None:
    """One worker: it says of every job by itself what became of it."""
    config = {
        "bootstrap.servers": servers,
        "group.id": GROUP,
        "share.acknowledgement.mode": "explicit",
        "log_level": 0,
    }
    end = time.monotonic() + limit_s
    with ShareConsumer(config) as consumer:
        consumer.subscribe([TOPIC])
        while not shop.is_done and time.monotonic() < end:
            for message in consumer.poll(0.5):
                consumer.acknowledge(message, shop.resize(message.value().decode()))
            consumer.commit_sync(10.0)


def dead_letters(servers: str, count: int) -> list[tuple[str, str]]:
    with Consumer(servers, topics=[DEAD]) as consumer:
        found = consumer.take(count, timeout_s=30.0)
    return [((one.value or b"").decode(), (one.header("penstock.dead.reason") or b"").decode()) for one in found]


if __name__ == "__main__":
    main()
