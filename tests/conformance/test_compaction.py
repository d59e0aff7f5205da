"""A compacted topic on a running broker: in the end each key has its last value, and readers never miss it."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing import Cluster

TOPIC = "latest"
PADDING = b" " * 1000
QUICK = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "file.delete.delay.ms": "0",
}


def read_all(servers: str) -> dict[bytes, list[bytes]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: dict[bytes, list[bytes]] = {}
    while True:
        message = consumer.poll(10)
        assert message is not None, "the end of the partition was not reached"
        if message.error():
            break
        values.setdefault(message.key(), []).append(message.value())
    consumer.close()
    return values


def test_each_key_keeps_its_last_value_and_loses_older_ones(tmp_path: Path) -> None:
    with Cluster({"log.cleaner.backoff.ms": "100"}, data_dir=tmp_path) as cluster:
        servers = cluster.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=QUICK)])[TOPIC].result(10)
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "batch.num.messages": 20})
        for number in range(4000):
            producer.produce(TOPIC, key=b"key-%d" % (number % 10), value=b"%d" % number + PADDING)
            if number % 500 == 499:
                producer.flush()
        producer.flush()
        expected = {b"key-%d" % key: b"%d" % (3990 + key) + PADDING for key in range(10)}
        deadline = time.monotonic() + 30
        while True:
            values = read_all(servers)
            assert {key: found[-1] for key, found in values.items()} == expected
            if sum(map(len, values.values())) < 2000:
                break
            assert time.monotonic() < deadline, "compaction left most old values where they were"
    with Cluster(data_dir=tmp_path) as cluster:
        values = read_all(cluster.bootstrap_servers)
        assert {key: found[-1] for key, found in values.items()} == expected
