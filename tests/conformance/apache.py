"""A real Apache Kafka 4.3.0 as a process: one node, broker and controller, on free ports, in a temporary directory.

The jars are found by PENSTOCK_KAFKA_JARS or in .cache/kafka/4.3.0/libs of this repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from benchmarks.ports import free_port
from penstock.protocol.generated.metadata_request import MetadataRequest
from tests.bad_input.raw_client import Closed, RawClient
from tests.components import require_component

VERSION = "4.3.0"
CACHED_JARS = Path(__file__).parents[2] / ".cache" / "kafka" / VERSION / "libs"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
START_TIMEOUT_S = 100
STOP_TIMEOUT_S = 20
METADATA_VERSION = 12


def find_jars() -> Path | None:
    place = Path(os.environ.get("PENSTOCK_KAFKA_JARS", CACHED_JARS))
    return place if any(place.glob(f"kafka-clients-{VERSION}.jar")) else None


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, and that nobody else is given: a server binds its port seconds later."""
    return [free_port() for _ in range(count)]


class ApacheKafka:
    """`with ApacheKafka(directory) as kafka: kafka.bootstrap`. `overrides` are lines of server.properties."""

    def __init__(self, directory: Path, overrides: dict[str, str] | None = None, heap_mb: int = 512) -> None:
        jars = find_jars()
        require_component(shutil.which("java") is not None, "Java", "install a JDK 17 or newer")
        require_component(jars is not None, f"Apache Kafka {VERSION}", "set PENSTOCK_KAFKA_JARS to its libs directory")
        self._directory = directory
        self._class_path = f"{jars}/*"
        self._heap_mb = heap_mb
        self._port, self._controller_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = self._write_properties(overrides or {})
        self.bootstrap = f"127.0.0.1:{self._port}"

    def __enter__(self) -> ApacheKafka:
        self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties))
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, or start again on the same data, and wait until it serves clients."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(self._properties)), stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            assert self._process.poll() is None, f"Apache Kafka ended at once:\n{self._tail()}"
            assert time.monotonic() < deadline, f"Apache Kafka did not start in {START_TIMEOUT_S} s:\n{self._tail()}"
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def run_tool(self, main_class: str, *arguments: str) -> str:
        """One of Kafka's own command line tools, for example `org.apache.kafka.tools.TopicCommand`."""
        return self._java(main_class, *arguments)

    @property
    def log(self) -> Path:
        return self._directory / "kafka.out"

    @property
    def data(self) -> Path:
        return self._directory / "data"

    def _answers(self) -> bool:
        """It takes connections before it is let into the cluster, and tells of no broker until then."""
        try:
            with RawClient(("127.0.0.1", self._port), timeout_s=1) as client:
                told = client.call(MetadataRequest(topics=[]), METADATA_VERSION)
        except (OSError, Closed):
            return False
        return bool(told.brokers) and told.controller_id >= 0

    def _tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def _java(self, main_class: str, *arguments: str) -> str:
        done = subprocess.run(self._command(main_class, *arguments), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{main_class} failed:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _command(self, main_class: str, *arguments: str) -> list[str]:
        options = [f"-Xmx{self._heap_mb}m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        return ["java", *options, "-cp", self._class_path, main_class, *arguments]

    def _write_properties(self, overrides: dict[str, str]) -> Path:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self._directory / "data"),
            "num.partitions": "1",
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "3",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "3",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "true",
            **overrides,
        }
        path = self._directory / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path
