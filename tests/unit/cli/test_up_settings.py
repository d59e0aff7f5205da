"""`penstock up` before it starts anything: what nodes are configured with, what is refused, what stays on the disk."""

import io
import os
import subprocess
import sys

import pytest

from penstock.cli.failures import Failure
from penstock.cli.main import main
from penstock.cli.running import DataLock
from penstock.cli.up_layout import Layout
from penstock.cli.up_nodes import Voice
from penstock.cli.up_settings import configurations

HOLD = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit("taken")
print("held", flush=True)
sys.stdin.read()
"""


def try_lock(path):
    """What another process is told that wants the lock as Apache Kafka's broker does."""
    done = subprocess.run([sys.executable, "-c", HOLD, path], input="", capture_output=True, text=True, timeout=30)
    return done.stdout.strip() or done.stderr.strip()


def configured(directory, nodes, port=9092):
    return configurations(Layout(str(directory)), list(range(1, nodes + 1)), port, "192.0.2.1", {})


def test_ports_are_ten_apart_and_the_controller_is_one_above(tmp_path):
    values = configured(tmp_path, 2, 65500)
    assert [values[node]["listeners"] for node in (1, 2)] == [
        "PLAINTEXT://192.0.2.1:65500,CONTROLLER://192.0.2.1:65501",
        "PLAINTEXT://192.0.2.1:65510,CONTROLLER://192.0.2.1:65511",
    ]
    voters = {values[node]["controller.quorum.voters"] for node in (1, 2)}
    assert voters == {"1@192.0.2.1:65501,2@192.0.2.1:65511"}


def test_six_nodes_have_five_voters(tmp_path):
    roles = [one["process.roles"] for one in configured(tmp_path, 6).values()]
    assert roles == ["broker,controller"] * 5 + ["broker"]


@pytest.mark.parametrize(
    ("nodes", "setting"),
    [
        ("1", "node.id=7"),
        ("1", "process.roles=broker"),
        ("1", "controller.quorum.voters=1@localhost:1"),
        ("1", "log.dirs=/elsewhere"),
        ("3", "node.id=7"),
        ("3", "controller.listener.names=OTHER"),
        ("3", "log.dir=/elsewhere"),
        ("3", "listeners=PLAINTEXT://localhost:1"),
        ("3", "advertised.listeners=PLAINTEXT://localhost:1"),
        ("3", "penstock.admin.listener=localhost:1"),
    ],
)
def test_what_belongs_to_one_node_is_refused_by_name(tmp_path, capsys, nodes, setting):
    data = tmp_path / "data"
    assert main(["up", "--nodes", nodes, "--data", str(data), "--set", setting]) == 2
    said = capsys.readouterr().err
    assert f"--set {setting}: " in said
    assert "write a file for each node" in said and "penstock broker --config" in said
    assert not data.exists()


def test_what_belongs_to_one_node_is_edited_where_there_are_files(tmp_path, capsys):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "server.properties").write_text("node.id=1\n")
    assert main(["up", "--data", str(tmp_path), "--set", "node.id=7"]) == 2
    assert f"edit {tmp_path}/<node>/server.properties" in capsys.readouterr().err


def test_what_an_ephemeral_start_refuses_names_no_directory(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["up", "--ephemeral", "--set", "node.id=7"]) == 2
    said = capsys.readouterr().err
    assert "write a file for each node" in said and str(tmp_path) not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "0 to 65535"),
        (["--port", "-1"], "0 to 65535"),
        (["--port", "65534"], "choose 1 to 65533"),
        (["--port", "65530", "--nodes", "3"], "choose 1 to 65513"),
        (["--nodes", "8000"], "start fewer"),
    ],
)
def test_ports_that_there_are_not_are_refused_with_the_range(tmp_path, capsys, arguments, said):
    data = tmp_path / "data"
    assert main(["up", "--data", str(data), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not data.exists()


def test_an_empty_directory_name_is_refused(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["up", "--data", ""]) == 2
    assert "--data is empty" in capsys.readouterr().err
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("flush.messages=1", "log.flush.interval.messages"),
        ("follower.replication.throttled.replicas=*", "penstock topic alter"),
    ],
)
def test_a_topics_configuration_is_refused_and_the_brokers_named(tmp_path, capsys, setting, told):
    assert main(["up", "--data", str(tmp_path / "data"), "--set", setting]) == 2
    assert told in capsys.readouterr().err
    assert main(["broker", "--set", setting]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("nodes", ["1", "3"])
def test_a_value_that_cannot_be_is_refused_before_anything_is_written(tmp_path, capsys, nodes):
    data = tmp_path / "data"
    assert main(["up", "--nodes", nodes, "--data", str(data), "--set", "log.retention.hours=abc"]) == 1
    assert "log.retention.hours" in capsys.readouterr().err
    assert not data.exists()


def test_where_the_file_is_at_fault_it_is_named(tmp_path, capsys):
    file = tmp_path / "1" / "server.properties"
    file.parent.mkdir()
    file.write_text("log.retention.hours=abc\n")
    assert main(["up", "--data", str(tmp_path), "--port", "0"]) == 1
    said = capsys.readouterr().err
    assert f"stays in {file}" in said and "--set KEY=VALUE" in said
    assert file.read_text() == "log.retention.hours=abc\n"


def test_a_host_that_cannot_be_is_not_blamed_on_an_earlier_start(tmp_path, capsys):
    values = configured(tmp_path, 1)
    with Layout(str(tmp_path)).written(values) as files:
        files.keep()
    assert main(["up", "--data", str(tmp_path), "--host", "a,b"]) == 1
    said = capsys.readouterr().err
    assert "listeners: " in said and "earlier starts" not in said


def test_voters_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "server.properties").write_text("controller.quorum.voters=one@localhost:1\n")
    with pytest.raises(Failure, match=r"1/server\.properties: controller\.quorum\.voters"):
        Layout(str(tmp_path)).voters()


def test_a_start_by_which_nobody_gets_ready_leaves_the_files_as_they_were(tmp_path):
    layout = Layout(str(tmp_path))
    with layout.written({1: {"a": "1"}}) as files:
        files.keep()
    with pytest.raises(Failure), layout.written({1: {"a": "2"}, 2: {"a": "2"}}):
        assert (layout.earlier(1), layout.nodes()) == ({"a": "2"}, [1, 2])
        raise Failure("it did not start")
    assert (layout.earlier(1), layout.nodes()) == ({"a": "1"}, [1])


def test_data_of_a_start_that_failed_says_which_cluster_it_is(tmp_path):
    """The file that said it is gone, and a node's data is refused by any other cluster."""
    data = tmp_path / "2" / "data"
    data.mkdir(parents=True)
    (data / "meta.properties").write_text("cluster.id=known\n")
    layout = Layout(str(tmp_path))
    assert [layout.cluster_id(nodes) for nodes in (1, 3)] == ["known", "known"]


def test_a_cluster_of_several_gets_an_id_and_one_alone_chooses(tmp_path):
    layout = Layout(str(tmp_path))
    assert layout.cluster_id(1) is None
    assert layout.cluster_id(3)


def test_who_holds_the_lock_is_named(tmp_path):
    path = str(tmp_path / ".lock")
    command = [sys.executable, "-c", HOLD, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(Failure) as refused, DataLock(str(tmp_path)):
            pass
        assert f"{tmp_path} is in use by another broker (process {other.pid})" in str(refused.value)
    with DataLock(str(tmp_path)):
        assert try_lock(path) == "taken"
    assert try_lock(path) == "held"


def test_every_line_of_a_node_says_whose_it_is(monkeypatch):
    said = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(said, "utf-8"))
    voice = Voice(2)
    print("one\n  two", file=voice)
    print("three", file=voice)
    assert said.getvalue().decode() == "[2] one\n[2]   two\n[2] three\n"


def test_a_node_that_cannot_speak_ends_all_the_same():
    """It is a copy of the process that started it, and must not go on as that one."""
    script = """
import os, sys
from penstock.cli import up_nodes
sys.stderr = None
try:
    up_nodes._be_broker(1, "/nowhere", os.dup(1))
finally:
    print("went on", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "went on" not in done.stdout
