"""`penstock up --nodes N`: each broker a process of its own, in the layout that tools rely on."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from penstock.broker.properties import parse_properties
from penstock.cli.running import holder
from penstock.client import Admin, Consumer, Producer, TopicNotFound
from proofs.cluster_up import PENSTOCK, ClusterUp, ready

TIMEOUT_S = 30


@pytest.fixture(scope="module")
def trio(tmp_path_factory):
    """For tests that leave it as it was."""
    with ClusterUp(tmp_path_factory.mktemp("trio") / "data") as cluster:
        yield cluster


def run(*arguments):
    return subprocess.run([PENSTOCK, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def until(condition, what):
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def await_all(admin):
    """A node is ready a moment before the others hear of it."""
    until(lambda: [broker.id for broker in admin.cluster().brokers] == [1, 2, 3], "not all nodes are told")


def described(admin, topic):
    """By a broker that has heard of the new topic."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return admin.topic(topic)
        except TopicNotFound:
            assert time.monotonic() < deadline, f"nobody knows {topic}"


def properties(cluster, node):
    return parse_properties(cluster.properties(node).read_text())


def test_each_node_has_its_process_its_configuration_and_its_address(trio):
    addresses = trio.bootstrap.split(",")
    assert len(addresses) == 3
    assert len({trio.pid(node) for node in (1, 2, 3)} | {trio.process.pid}) == 4
    for node, address in enumerate(addresses, 1):
        values = properties(trio, node)
        assert (values["node.id"], values["process.roles"]) == (str(node), "broker,controller")
        assert f"PLAINTEXT://{address}" in values["listeners"]
        assert os.path.realpath(f"/proc/{trio.pid(node)}/exe") == os.path.realpath(f"/proc/{trio.process.pid}/exe")


def test_any_node_tells_of_all(trio):
    for address in trio.bootstrap.split(","):
        with Admin(address) as admin:
            await_all(admin)


def told_of(cluster):
    return json.loads(run("cluster", "-b", cluster.bootstrap, "--format", "json").stdout)


def test_the_quorum_and_the_health_of_copies_are_told(tmp_path):
    with ClusterUp(tmp_path / "data") as cluster:
        with Admin(cluster.bootstrap) as admin:
            admin.create_topic("watched", partitions=3)
            until(lambda: told_of(cluster)["partitions"]["under_replicated"] == 0, "copies are not in sync")
        quorum = told_of(cluster)["quorum"]
        assert [(one["id"], one["role"]) for one in quorum["nodes"] if one["role"] != "voter"] == [
            (quorum["leader_id"], "leader")
        ]
        assert [one["id"] for one in quorum["nodes"]] == [1, 2, 3]
        lost = next(node for node in (1, 2, 3) if node != quorum["leader_id"])
        cluster.kill(lost)
        until(lambda: told_of(cluster)["partitions"]["under_replicated"] == 3, "a lost copy is not told")
        told = told_of(cluster)
        assert (told["partitions"]["partitions"], told["partitions"]["without_leader"]) == (3, 0)
        behind = {one["id"]: one["behind"] for one in told["quorum"]["nodes"]}
        assert behind[quorum["leader_id"]] == 0 and behind[lost] > 0


def test_topics_have_three_copies_by_themselves(trio):
    with Admin(trio.bootstrap) as admin:
        admin.create_topic("threefold", partitions=6)
        partitions = described(admin, "threefold").partitions
    assert [sorted(one.replicas) for one in partitions] == [[1, 2, 3]] * 6
    assert sorted({one.leader for one in partitions}) == [1, 2, 3]


def test_what_is_sent_to_one_is_read_from_the_others(trio):
    first, second, third = trio.bootstrap.split(",")
    with Producer(first) as producer:
        for number in range(30):
            producer.send("shared", str(number), key=str(number))
    for address in (second, third):
        with Consumer(address, topics=["shared"]) as consumer:
            assert sorted(int(record.value) for record in consumer.take(30)) == list(range(30))


def test_a_node_that_cannot_start_ends_all_and_is_named(tmp_path):
    strange = tmp_path / "2" / "data"
    strange.mkdir(parents=True)
    (strange / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=9\n")
    done = run("up", "--nodes", 3, "--data", tmp_path, "--port", 0)
    assert (done.returncode, done.stdout) == (1, "")
    assert "node 2 ended with exit code 1 before it was ready" in done.stderr
    assert "[2] penstock: the configuration cannot be run: node.id: it is 2" in done.stderr
    assert [holder(str(tmp_path / str(node) / "pid")) for node in (1, 2, 3)] == [None] * 3


NOBODY_IS_HEARD = """
import sys
from penstock.cli import main, up_nodes
up_nodes._READY, up_nodes.NOTE_AFTER_S = b"never", 0.1
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_who_is_not_ready_after_a_while_is_told_once_and_a_stop_leaves_nothing_for_the_next_start(
    tmp_path, number, code
):
    data, said = tmp_path / "data", tmp_path / "said"
    command = [sys.executable, "-c", NOBODY_IS_HEARD, "up", "--nodes", "2", "--data", str(data), "--port", "0"]
    with said.open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        try:
            until(lambda: "the wait goes on" in said.read_text(), "nobody is told of")
            process.send_signal(number)
            out, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.terminate()
    assert (process.returncode, out) == (code, "")
    told = [line for line in said.read_text().splitlines() if "not ready after" in line]
    assert len(told) == 1
    assert "nodes 1 (process " in told[0] and ", 2 (process " in told[0]
    assert f"{data}/2/server.properties" in said.read_text()
    assert not list(data.glob("*/server.properties"))


def test_the_data_of_a_node_is_locked(trio, tmp_path):
    elsewhere = tmp_path / "server.properties"
    elsewhere.write_text(trio.properties(2).read_text())
    refused = run("broker", "--config", elsewhere)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{trio.directory}/2/data is in use by another broker (process {trio.pid(2)})" in refused.stderr


def test_a_second_start_on_a_running_cluster_is_refused_and_changes_nothing(trio):
    before = trio.properties(1).read_text()
    refused = run("up", "--data", trio.directory, "--port", 0)
    assert refused.returncode == 1
    assert str(trio.pid(1)) in refused.stderr
    assert trio.properties(1).read_text() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly_and_finds_everything_again(tmp_path, number):
    with ClusterUp(tmp_path / "data") as cluster:
        with Producer(cluster.bootstrap) as producer:
            producer.send("kept", b"x").result(TIMEOUT_S)
        cluster.process.send_signal(number)
        assert cluster.process.wait(TIMEOUT_S) == 0
        assert not [node for node in (1, 2, 3) if (cluster.directory / str(node) / "pid").exists()]
    with ClusterUp(tmp_path / "data", nodes=None) as again:
        assert len(again.bootstrap.split(",")) == 3
        with Consumer(again.bootstrap, topics=["kept"]) as consumer:
            assert consumer.take(1)[0].value == b"x"


def test_fewer_nodes_than_there_are_make_no_cluster(trio):
    refused = run("up", "--nodes", 1, "--data", trio.directory)
    assert refused.returncode == 2
    assert "a cluster of 3" in refused.stderr


def test_a_broker_that_dies_is_reported_not_restarted_and_brought_back_by_hand(tmp_path):
    with ClusterUp(tmp_path / "data") as cluster:
        pid = cluster.pid(2)
        cluster.kill(2)
        until(lambda: f"node 2 (process {pid}) was killed by SIGKILL" in cluster.said(), "nothing was said of its end")
        assert str(cluster.properties(2)) in cluster.said()
        assert holder(str(cluster.directory / "2" / "pid")) is None
        assert cluster.bring_back(2) == cluster.bootstrap.split(",")[1]
        assert cluster.pid(2) not in (pid, cluster.process.pid)
        with Admin(cluster.bootstrap.split(",")[1]) as admin:
            until(lambda: len(admin.cluster().brokers) == 3, "node 2 is not back")
        assert cluster.stop() == 0
        assert "node 2 was started by hand" in cluster.said()


def test_when_the_last_one_is_gone_it_ends(tmp_path):
    with ClusterUp(tmp_path / "data", nodes=2) as cluster:
        for node in (1, 2):
            cluster.kill(node)
        assert cluster.process.wait(TIMEOUT_S) == 1


def test_brokers_do_not_outlive_a_parent_that_is_killed(tmp_path):
    with ClusterUp(tmp_path / "data", nodes=2) as cluster:
        pids = [str(cluster.directory / str(node) / "pid") for node in (1, 2)]
        cluster.process.kill()
        until(lambda: not any(holder(path) for path in pids), "brokers go on without their parent")


def test_one_broker_becomes_three(tmp_path):
    """The first stays the only controller; the others join as brokers."""
    with ClusterUp(tmp_path / "data", nodes=1) as one, Producer(one.bootstrap) as producer:
        producer.send("kept", b"x").result(TIMEOUT_S)
    with ClusterUp(tmp_path / "data", nodes=3) as three:
        assert [properties(three, node)["process.roles"] for node in (1, 2, 3)] == [
            "broker,controller",
            "broker",
            "broker",
        ]
        with Admin(three.bootstrap) as admin:
            await_all(admin)
        with Consumer(three.bootstrap, topics=["kept"]) as consumer:
            assert consumer.take(1)[0].value == b"x"


def test_ephemeral_keeps_nothing(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [PENSTOCK, "up", "--nodes", "2", "--ephemeral", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            ready(process, lambda: "")
            assert list(tmp_path.iterdir())
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
    assert not list(tmp_path.iterdir())
