"""One data directory and one server.properties, which either broker runs on: Apache Kafka's, or Penstock's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.ports import free_port

VERSION = "4.3.0"
ROOT = Path(__file__).resolve().parent.parent
CLUSTER_ID = "5M7h4oTiU-fNDuL--Y97tw"
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
TOOL_TIMEOUT_S = 60
JVM_OPTIONS = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


def kafka_jars() -> Path:
    place = Path(os.environ.get("PENSTOCK_KAFKA_JARS", ROOT / ".cache" / "kafka" / VERSION / "libs"))
    if not any(place.glob(f"kafka-clients-{VERSION}.jar")) or shutil.which("java") is None:
        raise RuntimeError(f"Apache Kafka {VERSION} and Java are needed: `python tools/fetch_kafka.py`, a JDK 17")
    return place


class EitherBroker:
    """At most one of the two runs at a time, always at the same address."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.directory = directory
        self.data = directory / "data"
        self._jars = kafka_jars()
        self._port = free_port()
        self.address = f"127.0.0.1:{self._port}"
        self.properties = self._write_properties(settings)
        self.pid = 0
        """of the one that was started last"""

    def format(self) -> None:
        self.tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.properties))

    @contextmanager
    def apache(self, *, kill: bool = False) -> Iterator[None]:
        with self._running(self._java("kafka.Kafka", str(self.properties)), "apache", kill):
            yield

    @contextmanager
    def penstock(self, *, kill: bool = False) -> Iterator[None]:
        command = [sys.executable, "-m", "penstock.cli.main", "broker", "--config", str(self.properties)]
        with self._running(command, "penstock", kill):
            yield

    def tool(self, main_class: str, *arguments: str) -> str:
        """One of Apache's command-line tools; it must succeed."""
        command = self._java(main_class, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S)
        assert done.returncode == 0, f"{main_class} {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        return ["java", *JVM_OPTIONS, "-cp", f"{self._jars}/*", main_class, *arguments]

    @contextmanager
    def _running(self, command: list[str], name: str, kill: bool) -> Iterator[None]:
        """Ended with SIGKILL where asked for, else with SIGTERM, upon which it must end by itself."""
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.pid = process.pid
        try:
            self._await_answer(process, name)
            yield
            process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            process.wait(STOP_TIMEOUT_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def _await_answer(self, process: subprocess.Popen[bytes], name: str) -> None:
        """Until a client gets the cluster's metadata."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            assert process.poll() is None, f"{name} ended at once, see {self.directory / name}.log"
            try:
                AdminClient({"bootstrap.servers": self.address, "log_level": 0}).list_topics(timeout=1)
                return
            except KafkaException:
                continue
        raise AssertionError(f"{name} did not answer in {START_TIMEOUT_S} s, see {self.directory / name}.log")

    def _write_properties(self, settings: dict[str, str]) -> Path:
        controller_port = free_port()
        values = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "3",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.backoff.ms": "200",
            "log.initial.task.delay.ms": "100",  # before that, half a minute by default, Kafka writes no checkpoint
            "log.flush.offset.checkpoint.interval.ms": "500",
            "log.flush.start.offset.checkpoint.interval.ms": "500",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        return path
