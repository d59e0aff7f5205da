"""Pipelines on a Spark Connect server that knows nothing of us but what is installed beside it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from penstock.cli.main import main
from penstock.pipeline.java import JavaMissing, find_java
from tests.components import require_component
from tests.conformance.apache import free_ports
from tests.pipeline.conftest import Running

ROOT = Path(__file__).parents[2]
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
STARTS_S = 90
pytestmark = pytest.mark.timeout(400)  # a Spark of its own

ENRICHED = """
from penstock.pipeline import Pipeline

pipeline = Pipeline("enriched")
names = pipeline.table("{names}", key=str, value=str)
clicks = pipeline.stream("{clicks}", key=str, value=str, starting="earliest")
clicks.join(names, lambda click, name: name, to=str).group_by(lambda name: name, key=str).count().to("{counts}")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As start-connect-server.sh does it, which PySpark's own package leaves out."""
    try:
        java = find_java()
    except JavaMissing as missing:
        require_component(False, "Java", str(missing))
    home, scratch = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("connect")
    (port,) = free_ports(1)
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", SERVER]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    surroundings = {**os.environ, "JAVA_HOME": str(java), "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with (
        (scratch / "log").open("wb") as log,
        subprocess.Popen(
            command, cwd=scratch, env=surroundings, stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        try:
            wait_for(port, process, scratch / "log")
            yield f"sc://127.0.0.1:{port}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTS_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    pytest.fail(f"the server did not start: {log.read_text()[-2000:]}")


def test_topics_are_read_written_and_streamed_and_a_load_is_refused(server: str, penstock_cluster: Running) -> None:
    source, target = penstock_cluster.create_topic(2), penstock_cluster.create_topic()
    penstock_cluster.produce(source, ["a", "b", "c"], key="k")
    command = [
        sys.executable,
        "-m",
        "tests.pipeline.connect_client",
        server,
        penstock_cluster.bootstrap,
        source,
        target,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["read"] == ["a", "b", "c"] and told["streamed"] == ["a!", "b!", "c!"]
    assert told["load"].startswith("a load does not run over Spark Connect, which does not tell a batch the query")


def test_a_stateful_pipeline_runs_by_the_command_and_goes_on_where_it_stopped(
    server: str, penstock_cluster: Running, tmp_path: Path
) -> None:
    names, clicks = penstock_cluster.create_topic(), penstock_cluster.create_topic(2)
    counts = f"{clicks}-counts"
    penstock_cluster.produce(names, ["Ada"], key="1")
    penstock_cluster.produce(names, ["Bob"], key="2")
    for key in ("1", "1", "2"):
        penstock_cluster.produce(clicks, ["click"], key=key)
    file = tmp_path / "enriched_pipeline.py"
    file.write_text(ENRICHED.format(names=names, clicks=clicks, counts=counts))
    command = [sys.executable, "-m", "penstock.cli.main", "pipeline", "run", str(file), "--master", server, "--once"]
    command += ["-b", penstock_cluster.bootstrap, "--at-least-once", "--checkpoint", str(tmp_path / "state")]
    told = run(command, tmp_path)
    assert "enriched has stopped after 5 records" in told and "batch 0: 5 records" in told
    assert latest(penstock_cluster, counts) == {"Ada": 2, "Bob": 1}
    penstock_cluster.produce(clicks, ["click"], key="1")
    assert "enriched has stopped after 1 records" in run(command, tmp_path)
    assert latest(penstock_cluster, counts) == {"Ada": 3, "Bob": 1}


def run(command: list[str], state: Path) -> str:
    surroundings = {**os.environ, "XDG_STATE_HOME": str(state)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=surroundings)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def latest(cluster: Running, topic: str) -> dict[str, int]:
    from penstock.client import Admin, Consumer, TopicPartition

    with Admin(cluster.bootstrap) as admin:
        (end,) = admin.offsets([TopicPartition(topic, 0)], "latest").values()
    found: dict[str, int] = {}
    with Consumer(cluster.bootstrap, topics=[topic]) as consumer:
        for record in consumer:
            found[record.key.decode()] = int.from_bytes(record.value, "big")
            if record.offset + 1 == end:
                return found
    raise AssertionError("the topic ended early")


def test_what_cannot_run_there_is_said_before_anything_is_started(
    penstock_cluster: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No server is asked: there is none at this address."""
    topic = penstock_cluster.create_topic()
    common = ["-b", penstock_cluster.bootstrap, "--master", "sc://127.0.0.1:1"]
    assert main(["load", topic, "--to", str(tmp_path / "table"), *common]) == 2
    assert "a load does not run over Spark Connect" in capsys.readouterr().err
    assert not (tmp_path / "table").exists()
    file = tmp_path / "kept_pipeline.py"
    file.write_text(ENRICHED.format(names=topic, clicks=penstock_cluster.create_topic(), counts="counts"))
    assert main(["pipeline", "run", str(file), *common]) == 2
    assert "kept where the server runs" in capsys.readouterr().err
    assert main(["pipeline", "run", str(file), *common, "--checkpoint", "/state"]) == 1
    assert "no Spark Connect server answers at sc://127.0.0.1:1" in capsys.readouterr().err
