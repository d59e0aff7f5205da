"""`Cluster`: a broker inside the test's own process."""

import os
import threading
import time
from pathlib import Path

import pytest

from penstock.broker.embedded import Embedded
from penstock.broker.nodes import free_ports, node_settings
from penstock.broker.system import SystemRandom
from penstock.client import Admin, Consumer, Producer, TopicNotFound
from penstock.testing import Cluster


def test_it_serves_and_leaves_nothing_behind():
    before = {t.name for t in threading.enumerate()}
    with Cluster() as cluster:
        directory = cluster.data_dir
        with Producer(cluster.bootstrap_servers) as producer:
            assert producer.send("made-by-sending", b"x").result(20).offset == 0
    assert not os.path.exists(directory)
    assert {t.name for t in threading.enumerate()} <= before | {"ThreadPoolExecutor"}
    with pytest.raises(AssertionError, match="not running"):
        _ = cluster.bootstrap_servers


def test_data_in_a_directory_of_ones_own_stays(tmp_path):
    with Cluster(data_dir=tmp_path) as cluster, Producer(cluster.bootstrap_servers) as producer:
        producer.send("kept", b"x").result(20)
    with Cluster(data_dir=tmp_path) as cluster, Consumer(cluster.bootstrap_servers, topics=["kept"]) as consumer:
        assert consumer.take(1)[0].value == b"x"


def test_a_restart_keeps_everything():
    with Cluster() as cluster:
        with Producer(cluster.bootstrap_servers) as producer:
            producer.send("kept", b"x").result(20)
        cluster.restart()
        with Consumer(cluster.bootstrap_servers, topics=["kept"]) as consumer:
            assert consumer.take(1)[0].value == b"x"


def test_two_at_once():
    with Cluster() as one, Cluster() as two:
        assert one.bootstrap_servers != two.bootstrap_servers


def test_a_configuration_that_cannot_be_run_is_refused_and_cleaned_up():
    cluster = Cluster({"num.partitions": "none"})
    with pytest.raises(Exception, match=r"num\.partitions"):
        cluster.start()
    with pytest.raises(AssertionError, match="not running"):
        _ = cluster.data_dir


def test_three_nodes_keep_three_copies_and_one_may_be_away():
    with Cluster(nodes=3) as cluster:
        assert len(cluster.bootstrap_servers.split(",")) == 3
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topic("kept")
            assert sorted(described(admin, "kept").partitions[0].replicas) == [1, 2, 3]
        with Producer(cluster.bootstrap_servers) as producer:
            producer.send("kept", b"1").result(20)
            cluster.stop_node(2)
            producer.send("kept", b"2").result(20)
            cluster.start_node(2)
        with Consumer(cluster.bootstrap_servers, topics=["kept"]) as consumer:
            assert [record.value for record in consumer.take(2)] == [b"1", b"2"]


def described(admin, topic):
    """By a broker that has heard of the new topic."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return admin.topic(topic)
        except TopicNotFound:
            assert time.monotonic() < deadline, f"nobody knows {topic}"


def test_no_connection_can_be_in_the_way_of_a_node_that_starts_again():
    numbers = [number for pair in free_ports(10, SystemRandom()) for number in pair]
    assert len(set(numbers)) == 20
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert [number for number in numbers if first <= number <= last] == [], "the system gives these to connections"


def test_a_node_that_cannot_start_ends_those_that_wait_for_it():
    cluster = Cluster(nodes=2)
    cluster.config["listeners"] = "PLAINTEXT://127.0.0.1:1x"
    with pytest.raises(Exception, match="listeners"):
        cluster.start()
    with pytest.raises(AssertionError, match="not running"):
        _ = cluster.data_dir


def test_a_node_without_a_majority_can_be_stopped(tmp_path):
    """The other of two never comes: the one waits, and ends when it is asked to."""
    ports = free_ports(2, SystemRandom())
    settings = node_settings(dict(enumerate(ports, 1)), [1, 2], "127.0.0.1", "AAAAAAAAQACAAAAAAAAAAQ")
    broker = Embedded(settings[1], str(tmp_path))
    ready = broker.begin()
    began = time.monotonic()
    broker.stop()
    assert ready.cancelled()
    assert time.monotonic() - began < 10


def test_a_cluster_finds_its_data_again(tmp_path):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster, Producer(cluster.bootstrap_servers) as producer:
        producer.send("kept", b"x").result(20)
    with (
        Cluster(nodes=3, data_dir=tmp_path) as cluster,
        Consumer(cluster.bootstrap_servers, topics=["kept"]) as consumer,
    ):
        assert consumer.take(1)[0].value == b"x"
