"""`Cluster`: a broker inside the test's own process."""

import os
import threading

import pytest

from penstock.client import Consumer, Producer
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
