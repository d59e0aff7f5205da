"""A table follows its topic: loads it, keeps up, goes on after a restart, and notices what must be loaded again."""

from __future__ import annotations

import threading

import pytest

from penstock.broker.nodes import free_ports
from penstock.broker.system import SystemRandom
from penstock.client import TopicPartition
from penstock.tables import NotReached, StillLoading, StoreInUse, StoreOfAnother, Table, TableError
from penstock.tables.follower import Follower
from penstock.testing import Cluster

COMPACTED = {"cleanup.policy": "compact"}


@pytest.fixture
def topic(kafka_topics):
    return kafka_topics(partitions=2, config=COMPACTED)


def values(table):
    return {entry.key.decode(): entry.value.decode() for entry in table.entries()}


def test_what_the_topic_holds_is_there_once_the_table_is_open(topic, put, opened):
    put(topic, a="1", b="2", c="3")
    put(topic, a="4", b=None)
    table = opened(topic)
    assert values(table) == {"a": "4", "c": "3"}
    assert table.count() == 2
    assert table.get("a").value == b"4"
    assert table.get("b") is None
    as_of = table.as_of()
    assert (as_of.lag, as_of.ready, as_of.state) == (0, True, "live")
    assert sum(as_of.offsets.values()) == 5


def test_an_empty_topic_is_a_table_too(topic, opened):
    assert values(opened(topic)) == {}


def test_who_wrote_a_record_can_wait_for_it(topic, put, opened):
    table = opened(topic)
    for turn in range(10):
        written = put(topic, key=str(turn))
        assert table.get("key", min_offsets=written).value == str(turn).encode()


def test_waiting_ends_with_an_error_that_tells_what_is_missing(topic, put, opened):
    table = opened(topic)
    with pytest.raises(NotReached, match="1:1000000"):
        table.get("key", min_offsets={1: 1_000_000}, wait_s=0.01)
    with pytest.raises(ValueError, match="no partition 7"):
        table.get("key", min_offsets={7: 0})


def test_closing_wakes_who_waits(topic, opened):
    table = opened(topic)
    failures = []

    def wait():
        try:
            table.wait_for({0: 1_000_000}, 60)
        except NotReached as error:
            failures.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    table.close()
    waiting.join(20)
    assert len(failures) == 1


def test_a_restart_goes_on_where_it_stopped(topic, put, opened):
    put(topic, a="1", b="2")
    with opened(topic) as table:
        assert table.progress.loads == 1
    put(topic, b="3", c="4")
    table = opened(topic)
    assert values(table) == {"a": "1", "b": "3", "c": "4"}
    assert table.progress.loads == 0
    assert table.progress.records == 2


def test_a_topic_made_anew_while_nobody_looked_is_loaded_again(
    topic, put, opened, kafka_admin, kafka_topics, eventually
):
    put(topic, a="1", b="2")
    opened(topic).close()
    kafka_admin.delete_topics([topic])
    eventually(lambda: topic not in [one.name for one in kafka_admin.topics()])
    kafka_admin.create_topic(topic, partitions=2, config=COMPACTED)
    put(topic, a="new", x="1", y="2", z="3")
    table = opened(topic)
    assert values(table) == {"a": "new", "x": "1", "y": "2", "z": "3"}
    assert "made anew" in table.progress.cause


def test_a_topic_made_anew_under_a_running_table_is_loaded_again(topic, put, opened, kafka_admin, eventually):
    put(topic, a="1", b="2")
    table = opened(topic)
    kafka_admin.delete_topics([topic])
    eventually(lambda: table.as_of().state in ("topic missing", "cut off"))
    assert table.get("a").value == b"1"
    kafka_admin.create_topic(topic, partitions=2, config=COMPACTED)
    written = put(topic, c="new")
    eventually(lambda: table.progress.loads == 2 and table.progress.ready)
    table.wait_for(written, 20)
    assert values(table) == {"c": "new"}
    assert "made anew" in table.progress.cause


def test_nobody_sees_a_table_that_is_not_whole(topic, put, opened, monkeypatch):
    put(topic, a="1")
    told, go_on = threading.Event(), threading.Event()

    def held(*arguments):
        told.set()
        assert go_on.wait(20)
        return gather(*arguments)

    gather = Follower._gather
    monkeypatch.setattr(Follower, "_gather", held)
    table = opened(topic, wait_s=0)
    assert told.wait(20)
    for look in (lambda: table.get("a"), lambda: table.get_many(["a"]), table.range, lambda: table.prefix("a")):
        with pytest.raises(StillLoading, match="1 records are missing"):
            look()
    go_on.set()
    table.wait_until_ready(20)
    assert table.get("a").value == b"1"


def test_records_removed_before_they_were_read_mean_a_new_load(kafka_topics, put, opened, kafka_admin):
    topic = kafka_topics(config={"cleanup.policy": "compact,delete"})
    put(topic, a="1", b="2")
    opened(topic).close()
    put(topic, b=None, c="3")
    put(topic, d="4")
    kafka_admin.delete_records({TopicPartition(topic, 0): 4})
    table = opened(topic)
    assert values(table) == {"d": "4"}
    assert "begins at offset 4" in table.progress.cause


def test_entries_go_with_the_records_that_retention_removes(kafka_topics, put, opened, kafka_admin, eventually):
    topic = kafka_topics(config={"cleanup.policy": "compact,delete"})
    put(topic, a="1", b="2", c="3")
    table = opened(topic)
    kafka_admin.delete_records({TopicPartition(topic, 0): 2})
    put(topic, d="4")
    eventually(lambda: values(table) == {"c": "3", "d": "4"})
    assert table.progress.loads == 1


def test_tombstones_that_may_be_gone_mean_a_new_load(kafka_topics, put, opened):
    topic = kafka_topics(config={**COMPACTED, "delete.retention.ms": "0"})
    put(topic, a="1")
    opened(topic).close()
    with opened(topic) as table:
        assert table.progress.loads == 0
    put(topic, b="2")
    assert "delete.retention.ms" in opened(topic).progress.cause


def test_partitions_added_later_are_read_too(topic, put, opened, kafka_admin, monkeypatch, eventually):
    monkeypatch.setattr("penstock.tables.follower.ASK_AGAIN_S", 0.05)
    put(topic, a="1")
    table = opened(topic)
    kafka_admin.add_partitions(topic, 3)
    put(topic, partition=2, z="26")
    eventually(lambda: table.get("z") is not None)
    assert values(table) == {"a": "1", "z": "26"}
    eventually(lambda: table.as_of().offsets.get(2) == 1)
    table.wait_for(put(topic, partition=2, y="25"), 20)


def test_a_key_that_moved_to_another_partition_keeps_its_later_value(topic, put, opened):
    put(topic, partition=1, timestamp_ms=2_000, a="new")
    put(topic, partition=0, timestamp_ms=1_000, a="old")
    assert values(opened(topic)) == {"a": "new"}
    assert values(opened(topic, "another")) == {"a": "new"}


def test_records_without_a_key_are_counted_and_left_out(kafka_topics, put, opened, kafka_producer):
    topic = kafka_topics()
    kafka_producer.send(topic, "no key")
    kafka_producer.flush()
    put(topic, a="1")
    table = opened(topic)
    assert values(table) == {"a": "1"}
    assert table.progress.keyless == 1


def test_a_directory_is_of_one_table(kafka_topics, topic, put, opened):
    opened(topic).close()
    with pytest.raises(StoreOfAnother, match=f"topic {topic} of cluster"):
        opened(kafka_topics())


def test_a_directory_is_of_one_cluster(tmp_path):
    for _ in range(2):
        with Cluster() as cluster:
            make_topic(cluster.bootstrap_servers)
            try:
                Table.open(cluster.bootstrap_servers, "orders", tmp_path, wait_s=20).close()
            except StoreOfAnother as error:
                assert "choose another directory" in str(error)
                return
    raise AssertionError("the table of another cluster was taken")


def make_topic(servers):
    from penstock.client import Admin

    with Admin(servers) as admin:
        admin.create_topic("orders", partitions=1)


def test_a_directory_has_one_owner(topic, opened):
    opened(topic)
    with pytest.raises(StoreInUse, match="in use by process"):
        opened(topic)


def test_a_topic_that_is_not_there_is_told(opened):
    with pytest.raises(TableError, match="there is no topic nowhere"):
        opened("nowhere")


def test_a_broker_that_is_not_there_is_told(tmp_path):
    with pytest.raises(TableError, match="localhost:1"):
        Table.open("localhost:1", "orders", tmp_path, timeout_ms=300)


def test_a_table_is_served_while_its_broker_is_away_and_goes_on_when_it_is_back(tmp_path, eventually):
    from penstock.client import Producer

    [ports] = free_ports(1, SystemRandom())
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{ports.client},CONTROLLER://127.0.0.1:{ports.controller}"}
    with Cluster(settings, data_dir=tmp_path / "broker") as cluster:
        make_topic(cluster.bootstrap_servers)
        with Producer(cluster.bootstrap_servers) as producer:
            producer.send("orders", "1", key="a")
        with Table.open(cluster.bootstrap_servers, "orders", tmp_path / "table", wait_s=20) as table:
            cluster.stop()
            eventually(lambda: table.as_of().state == "cut off")
            assert table.get("a").value == b"1"
            cluster.start()
            with Producer(cluster.bootstrap_servers) as producer:
                producer.send("orders", "2", key="a")
            eventually(lambda: table.get("a").value == b"2")
            eventually(lambda: table.as_of().state == "live")
            assert table.progress.loads == 1


def test_ranges_and_prefixes(topic, put, opened):
    put(topic, ant="1", bee="2", beetle="3", cat="4")
    table = opened(topic)
    assert [entry.key for entry in table.range("bee", "cat")] == [b"bee", b"beetle"]
    assert [entry.key for entry in table.range(limit=2)] == [b"ant", b"bee"]
    assert [entry.key for entry in table.range(after="bee")] == [b"beetle", b"cat"]
    assert [entry.key for entry in table.prefix("be")] == [b"bee", b"beetle"]
    assert [entry and entry.value for entry in table.get_many(["cat", "dog"])] == [b"4", None]
    with pytest.raises(ValueError, match="limit 0"):
        table.range(limit=0)
