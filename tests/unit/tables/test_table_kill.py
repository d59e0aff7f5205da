"""Killed in the middle of loading, again and again: the store is whole, and holds exactly what it says it holds."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from penstock.client import Producer
from penstock.tables.store import Store
from penstock.wire import blocking, fetch
from penstock.wire.sessions import FetchLimits

CHILD = Path(__file__).with_name("table_child.py")
PARTITIONS, RECORDS, KEYS, KILLS = 3, 30_000, 4_000, 8


def test_after_every_kill_the_store_is_the_topic_up_to_its_offsets(
    kafka_topics, kafka_bootstrap_servers, opened, tmp_path
):
    topic = kafka_topics(partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    chance = random.Random(5)
    fill(kafka_bootstrap_servers, topic, chance)
    records = read(kafka_bootstrap_servers, topic)
    directory = tmp_path / "table"
    seen = [0] * PARTITIONS
    for _ in range(KILLS):
        kill_while_loading(kafka_bootstrap_servers, topic, directory, chance)
        store = Store(str(directory))
        reached = [store.about.reached.get(p, (0, -1))[0] for p in range(PARTITIONS)]
        assert all(now >= before for now, before in zip(reached, seen, strict=True)), "a kill undid what was stored"
        assert stored(store) == model(records, reached)
        store.close()
        seen = reached
    assert 0 < sum(seen) < RECORDS, "no kill came in the middle of loading"
    table = opened(topic)
    assert {entry.key: entry.value for entry in table.entries()} == model(records, [RECORDS] * PARTITIONS)
    assert table.progress.records == RECORDS - sum(seen), "what was stored before a kill was read again"


def fill(servers, topic, chance):
    with Producer(servers, config={"batch.num.messages": 100}) as producer:
        for number in range(RECORDS):
            key = b"%d" % chance.randrange(KEYS)
            value = None if chance.random() < 0.2 else b"%d" % number
            producer.send(topic, value, key=key, partition=int(key) % PARTITIONS)


def read(servers, topic):
    """Every record by partition: offset, key, value."""
    from penstock.base.ids import TopicPartition

    found = {p: [] for p in range(PARTITIONS)}
    with blocking.Client(servers) as client:
        fetcher = blocking.Fetcher(client, fetch.Settings(FetchLimits(), reset=fetch.Reset.EARLIEST))
        fetcher.assign({TopicPartition(topic, p): 0 for p in range(PARTITIONS)})
        while sum(map(len, found.values())) < RECORDS:
            for part in fetcher.poll(1000):
                found[part.partition.partition] += [(r.offset, r.key, r.value) for r in part.records()]
    return found


def kill_while_loading(servers, topic, directory, chance):
    command = [sys.executable, str(CHILD), servers, topic, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            for _ in range(chance.randint(1, 6)):
                assert child.stdout.readline() == "transaction\n", "the table was loaded before it could be killed"
                child.stdin.write("\n")
                child.stdin.flush()
                time.sleep(chance.uniform(0, 0.005))  # somewhere in the transaction, or behind it
        finally:
            child.kill()


def stored(store):
    page = store.page(b"", None, KEYS + 1)
    assert not page.more
    return {entry.key: entry.value for entry in page.entries}


def model(records, reached):
    table = {}
    for partition, of_partition in records.items():
        for offset, key, value in of_partition:
            if offset < reached[partition]:
                table[key] = value
    return {key: value for key, value in table.items() if value is not None}
