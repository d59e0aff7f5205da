"""`penstock table serve` and `penstock table get` as a user runs them, against Apache Kafka and Penstock."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from penstock.client import Admin, Producer
from proofs import table_lookups

PENSTOCK = str(Path(sys.executable).parent / "penstock")
TIMEOUT_S = 40


class Serving:
    """`with Serving(servers, topic, directory) as server: server.get("/tables")`."""

    def __init__(self, servers, topic, directory, *arguments):
        self.command = [PENSTOCK, "table", "serve", topic, "-b", servers, "--dir", str(directory), "--port", "0"]
        self.command += arguments
        self.topic = topic
        self.errors = ""

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert select.select([self.process.stdout], [], [], TIMEOUT_S)[0], "it did not become ready"
        line = self.process.stdout.readline().decode()
        assert line.startswith("ready: http://127.0.0.1:"), line or self.process.stderr.read().decode()
        self.url = line.removeprefix("ready: ").strip()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=TIMEOUT_S)
        self.errors = errors.decode()
        self.code = self.process.returncode

    def get(self, path):
        """Status and body."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=TIMEOUT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def key(self, key, **parameters):
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return self.get(f"/tables/{self.topic}/keys/{key}?{query}")


@pytest.fixture
def topic(cluster, topic_name):
    with Admin(cluster.bootstrap) as admin:
        admin.create_topic(topic_name, partitions=2, config={"cleanup.policy": "compact"})
    return topic_name


def put(servers, topic, **values):
    """Where the records went, as `min_offsets` has it."""
    with Producer(servers, config={"linger.ms": 0}) as producer:
        sent = [producer.send(topic, value, key=key) for key, value in values.items()]
        producer.flush()
        places = {one.result(TIMEOUT_S).partition: one.result(TIMEOUT_S).offset for one in sent}
        return ",".join(f"{partition}:{offset}" for partition, offset in places.items())


def test_values_are_served_follow_the_topic_and_outlive_the_server(cluster, topic, tmp_path):
    put(cluster.bootstrap, topic, alice='{"balance": 1}', bob="2")
    with Serving(cluster.bootstrap, topic, tmp_path) as server:
        status, found = server.key("alice")
        assert (status, found["value"]) == (200, {"balance": 1})
        written = put(cluster.bootstrap, topic, bob=None, alice='{"balance": 7}')
        assert server.key("alice", min_offsets=written)[1]["value"] == {"balance": 7}
        status, found = server.get(f"/tables/{topic}")
        assert (status, found["lag"], found["cleanup_policy"]) == (200, 0, "compact")
    assert server.code == 0, server.errors
    put(cluster.bootstrap, topic, carol="3")
    with Serving(cluster.bootstrap, topic, tmp_path) as server:
        assert server.key("carol")[1]["value"] == 3
        assert server.key("bob")[0] == 404
        assert server.get(f"/tables/{topic}")[1]["records_read"] == 1


def test_a_key_is_got_from_the_server_or_from_the_store(cluster, topic, tmp_path):
    put(cluster.bootstrap, topic, alice='{"balance": 1}')

    def got(*arguments, code=0):
        command = [PENSTOCK, "table", "get", topic, *arguments, "-b", cluster.bootstrap, "--dir", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    assert got("alice") == '{"balance":1}\n'
    with Serving(cluster.bootstrap, topic, tmp_path) as server:
        assert json.loads(got("alice", "--format", "json"))["value"] == {"balance": 1}
        assert got("alice", "--url", server.url, "--value-format", "utf8") == '{"balance": 1}\n'
        assert "has no key 'nobody'" in got("nobody", code=1)
        assert "in use by process" in refused(cluster.bootstrap, topic, tmp_path)
    assert "has no key 'nobody'" in got("nobody", code=1)


def test_a_topic_that_is_not_there_ends_it_with_a_text(cluster, tmp_path):
    assert "there is no topic nowhere" in refused(cluster.bootstrap, "nowhere", tmp_path)


def refused(servers, topic, directory):
    command = [PENSTOCK, "table", "serve", topic, "-b", servers, "--dir", str(directory), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_killed_it_goes_on_with_what_it_had(cluster, topic, tmp_path):
    put(cluster.bootstrap, topic, **{f"k{n}": str(n) for n in range(500)})
    with Serving(cluster.bootstrap, topic, tmp_path) as server:
        server.process.kill()
        server.process.wait()
    put(cluster.bootstrap, topic, k7="new")
    with Serving(cluster.bootstrap, topic, tmp_path, "--value-format", "utf8") as server:
        assert server.key("k7")[1]["value"] == "new"
        assert server.key("k499")[1]["value"] == "499"
        assert server.get(f"/tables/{topic}")[1]["records_read"] == 1


def test_only_committed_transactions_are_served(apache_kafka, topic_name, tmp_path):
    with Admin(apache_kafka.bootstrap) as admin:
        admin.create_topic(topic_name, partitions=1, config={"cleanup.policy": "compact"})
    put(apache_kafka.bootstrap, topic_name, a="1", b="1")
    with (
        Producer(apache_kafka.bootstrap, transactional_id=f"t-{topic_name}") as producer,
        Serving(apache_kafka.bootstrap, topic_name, tmp_path) as server,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic_name, "aborted", key="a")
        producer.flush()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic_name, "2", key="b")
        producer.flush()
        assert server.key("b")[1]["value"] == 1
        producer.commit_transaction()
        wait_until(lambda: server.key("b")[1]["value"] == 2)
        assert server.key("a")[1]["value"] == 1
        wait_until(lambda: server.get(f"/tables/{topic_name}")[1]["lag"] == 0)


def wait_until(true):
    deadline = time.monotonic() + TIMEOUT_S
    while not true():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def test_a_small_table_under_updates_never_shows_a_value_that_was_not_written_or_an_older_one():
    figures = table_lookups.run(keys=20_000, seconds=2, rate_per_s=2_000)
    assert figures["values_checked"] > 1_000
