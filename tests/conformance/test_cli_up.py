"""`penstock up` and `penstock broker` as processes."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from penstock.client import Consumer, Producer

PENSTOCK = str(Path(sys.executable).parent / "penstock")


class Process:
    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [PENSTOCK, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    @property
    def servers(self):
        assert self.line.startswith("ready: "), self.stop()
        return self.line.removeprefix("ready: ").strip()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@pytest.fixture
def start():
    started = []

    def start(*arguments):
        started.append(Process(*arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def run(*arguments, **options):
    return subprocess.run([PENSTOCK, *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)


def send(servers, value):
    with Producer(servers) as producer:
        return producer.send("kept", value).result(20)


def read(servers):
    with Consumer(servers, topics=["kept"]) as consumer:
        return consumer.take(1)[0].value


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_starts_serves_stops_and_finds_everything_again(start, tmp_path, number):
    first = start("up", "--data", tmp_path, "--port", 0)
    send(first.servers, b"x")
    node = tmp_path / "1"
    assert int((node / "pid").read_text()) == first.process.pid
    assert f"PLAINTEXT://{first.servers}" in (node / "server.properties").read_text()
    code, out, _ = first.stop(number)
    assert (code, out) == (0, "")
    assert not (node / "pid").exists()
    second = start("up", "--data", tmp_path, "--port", 0)
    assert read(second.servers) == b"x"


def test_a_broker_is_brought_back_by_hand(start, tmp_path):
    first = start("up", "--data", tmp_path, "--port", 0)
    send(first.servers, b"x")
    first.stop(signal.SIGKILL)
    second = start("broker", "--config", tmp_path / "1" / "server.properties")
    assert second.servers == first.servers
    assert int((tmp_path / "1" / "pid").read_text()) == second.process.pid
    assert read(second.servers) == b"x"


def test_brought_back_without_its_data_it_has_its_pid_file_too(start, tmp_path):
    start("up", "--data", tmp_path, "--port", 0).stop()
    (tmp_path / "1" / "data").rename(tmp_path / "away")
    broker = start("broker", "--config", tmp_path / "1" / "server.properties")
    assert broker.servers
    assert int((tmp_path / "1" / "pid").read_text()) == broker.process.pid


def test_ephemeral_keeps_nothing(start, tmp_path):
    os.environ["TMPDIR"] = str(tmp_path)
    try:
        broker = start("up", "--ephemeral", "--port", 0)
    finally:
        del os.environ["TMPDIR"]
    send(broker.servers, b"x")
    assert list(tmp_path.iterdir())
    assert broker.stop()[0] == 0
    assert not list(tmp_path.iterdir())


def test_settings_reach_the_broker_and_stay(start, tmp_path):
    start("up", "--data", tmp_path, "--port", 0, "--set", "num.partitions=4").stop()
    broker = start("up", "--data", tmp_path, "--port", 0)
    with Producer(broker.servers) as producer:
        producer.send("four", b"").result(20)
        assert producer.partitions_for("four") == [0, 1, 2, 3]


def test_a_second_broker_on_the_same_data_is_refused(start, tmp_path):
    first = start("up", "--data", tmp_path, "--port", 0)
    assert first.servers
    refused = run("up", "--data", tmp_path, "--port", 0)
    assert refused.returncode == 1
    assert str(first.process.pid) in refused.stderr
    assert "--data" in refused.stderr


def alone(directory, *more):
    """The arguments of a broker by hand on these data."""
    settings = [
        "process.roles=broker,controller",
        "node.id=1",
        "listeners=PLAINTEXT://localhost:0,CONTROLLER://localhost:0",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={directory}",
        *more,
    ]
    return ["broker", *(word for setting in settings for word in ("--set", setting))]


def test_data_belong_to_one_broker_at_a_time(start, tmp_path):
    data = tmp_path / "data"
    first = start(*alone(data))
    send(first.servers, b"x")
    formatted = (data / "meta.properties").read_text()
    refused = run(*alone(data))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{data} is in use by another broker (process {first.process.pid})" in refused.stderr
    assert "log.dirs" in refused.stderr
    assert (data / "meta.properties").read_text() == formatted
    first.stop(signal.SIGKILL)
    assert read(start(*alone(data)).servers) == b"x"


def test_data_that_another_program_has_locked_are_left_alone(tmp_path):
    """As Apache Kafka's broker locks them."""
    data = tmp_path / "data"
    data.mkdir()
    with (data / ".lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        refused = run(*alone(data))
        assert refused.returncode == 1
        assert f"(process {os.getpid()})" in refused.stderr
        assert [path.name for path in data.iterdir()] == [".lock"]


def test_ready_is_json_from_a_broker_too(start, tmp_path):
    broker = start(*alone(tmp_path), "--format", "json")
    assert json.loads(broker.line)["ready"].startswith("localhost:")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_stopped_before_it_is_ready(tmp_path, number, code):
    """It waits for a majority that there is not."""
    voters = "controller.quorum.voters=1@localhost:1,2@localhost:2"
    command = alone(tmp_path, voters, "penstock.cluster.id=of-two")
    with subprocess.Popen([PENSTOCK, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "meta.properties").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err


def test_a_setting_that_prevents_a_start_does_not_stay(start, tmp_path):
    start("up", "--data", tmp_path, "--port", 0).stop()
    refused = run("up", "--data", tmp_path, "--port", 0, "--set", "penstock.cluster.id=another")
    assert refused.returncode == 1
    assert "another" in refused.stderr
    assert start("up", "--data", tmp_path, "--port", 0).servers


def test_a_taken_port_is_named(start, tmp_path):
    port = start("up", "--data", tmp_path / "a", "--port", 0).servers.rpartition(":")[2]
    refused = run("up", "--data", tmp_path / "b", "--port", port)
    assert refused.returncode == 1
    assert port in refused.stderr
    assert "another port" in refused.stderr


@pytest.mark.parametrize("setting", ["num.partitions=none", "num.partitions=-1"])
def test_a_bad_value_is_refused_by_name(tmp_path, setting):
    refused = run("up", "--data", tmp_path, "--port", 0, "--set", setting)
    assert refused.returncode == 1
    assert "num.partitions" in refused.stderr
    assert refused.stdout == ""


def test_the_environment_overrides_the_file(start, tmp_path):
    start("up", "--data", tmp_path, "--port", 0).stop()
    refused = run(
        "broker",
        "--config",
        tmp_path / "1" / "server.properties",
        env={**os.environ, "KAFKA_NUM_PARTITIONS": "none"},
    )
    assert refused.returncode == 1
    assert "num.partitions" in refused.stderr


def test_ready_is_json_on_request(start):
    broker = start("up", "--ephemeral", "--port", 0, "--format", "json")
    assert json.loads(broker.line)["ready"].startswith("localhost:")


def test_a_reader_that_goes_away_ends_consume_quietly(kafka_topic, kafka_bootstrap_servers, kafka_producer):
    for n in range(3):
        kafka_producer.send(kafka_topic, str(n)).result(10)
    command = (
        f"{PENSTOCK} consume {kafka_topic} -o start -b {kafka_bootstrap_servers} | head -1; echo ${{PIPESTATUS[0]}}"
    )
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30)
    assert found.stdout == "0\n0\n"
    assert found.stderr == ""


def test_an_interrupt_ends_consume_quietly_and_commits(
    kafka_topic, kafka_bootstrap_servers, kafka_producer, kafka_admin
):
    group = f"cli-{uuid.uuid4().hex[:8]}"
    kafka_producer.send(kafka_topic, "x").result(10)
    process = subprocess.Popen(
        [PENSTOCK, "consume", kafka_topic, "-g", group, "-o", "start", "-b", kafka_bootstrap_servers],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "x\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")
    assert list(kafka_admin.group_offsets(group).values()) == [1]
