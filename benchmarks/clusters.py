"""The clusters of three that the benchmarks compare, each node a process on free ports, with its defaults."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Protocol

import processes
from servers import (
    KAFKA_JVM_OPTIONS,
    KAFKA_LIBS,
    KAFKA_VERSION,
    PENSTOCK,
    POLL_S,
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    ServerFailed,
    answers,
    java,
)

from penstock.broker.nodes import free_ports
from penstock.broker.system import SystemRandom

NODES = 3
CLUSTER_ID = "AAAAAAAAQACAAAAAAAAAAQ"


class Cluster(Protocol):
    """`start_s`: from spawning the first process until every broker is ready for clients."""

    name: str
    directory: Path
    address: str
    start_s: float

    def start(self) -> None: ...

    def usage(self) -> processes.Usage: ...

    def stop(self) -> None: ...

    def kill(self) -> None:
        """Whatever still runs. Safe to repeat."""


class Processes:
    """What both have in common: processes that are asked to end, and killed where they do not."""

    name = ""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = ""
        self.start_s = 0.0
        self._processes: list[subprocess.Popen[bytes]] = []

    def spawn(self, command: list[str], output: str) -> None:
        with (self.directory / output).open("ab") as file:
            self._processes.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    cwd=self.directory,
                    start_new_session=True,
                )
            )

    def _said(self, output: str) -> str:
        return (self.directory / output).read_text(errors="replace")

    def _until(self, condition: Callable[[], bool], output: str) -> None:
        """`output`: what to show where it does not come true."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not condition():
            if any(process.poll() is not None for process in self._processes) or time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not start; its last output:\n{self._said(output)[-2000:]}")
            time.sleep(POLL_S)

    def usage(self) -> processes.Usage:
        each = [processes.usage(process.pid) for process in self._processes]
        return processes.Usage(
            cpu_s=sum(one.cpu_s for one in each),
            kernel_s=sum(one.kernel_s for one in each),
            rss_bytes=sum(one.rss_bytes for one in each),
            open_files=sum(one.open_files for one in each),
            processes=sum(one.processes for one in each),
        )

    def stop(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
                raise ServerFailed(f"{self.name} did not stop within {STOP_TIMEOUT_S} s") from None

    def kill(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(STOP_TIMEOUT_S)


class ApacheKafkaTrio(Processes):
    """Three combined KRaft nodes; formatting their directories is not counted as starting."""

    name = "kafka"

    @staticmethod
    def version() -> str:
        return KAFKA_VERSION

    def start(self) -> None:
        ports = free_ports(NODES, SystemRandom())
        clients, controllers = [pair.client for pair in ports], [pair.controller for pair in ports]
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in enumerate(controllers, 1))
        for node, (client, controller) in enumerate(zip(clients, controllers, strict=True), 1):
            self._format(node, client, controller, voters)
        began = time.monotonic()
        for node in range(1, NODES + 1):
            command = [java(), *KAFKA_JVM_OPTIONS, "-cp", f"{KAFKA_LIBS}/*"]
            self.spawn([*command, "kafka.Kafka", str(self._properties(node))], f"{node}.log")
        self._until(lambda: all(answers(port) for port in clients), "1.log")
        self.start_s = time.monotonic() - began
        self.address = f"127.0.0.1:{clients[0]}"

    def _format(self, node: int, client: int, controller: int, voters: str) -> None:
        self._properties(node).write_text(
            "process.roles=broker,controller\n"
            f"node.id={node}\n"
            f"controller.quorum.voters={voters}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self.directory / f'data-{node}'}\n"
        )
        options = ["format", "-t", CLUSTER_ID, "-c", str(self._properties(node))]
        command = [java(), "-cp", f"{KAFKA_LIBS}/*", "kafka.tools.StorageTool", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise ServerFailed(f"kafka-storage format failed: {(done.stdout + done.stderr)[-2000:]}")

    def _properties(self, node: int) -> Path:
        return self.directory / f"{node}.properties"


class PenstockTrio(Processes):
    """`penstock up --nodes 3`; its first start formats the directories, which counts as starting."""

    name = "penstock"

    @staticmethod
    def version() -> str:
        return metadata.version("penstock")

    def start(self) -> None:
        began = time.monotonic()
        command = [str(PENSTOCK), "up", "--nodes", str(NODES), "--port", "0", "--host", "127.0.0.1"]
        self.spawn([*command, "--data", str(self.directory / "data")], "output.log")
        self._until(lambda: "ready: " in self._said("output.log"), "output.log")
        self.start_s = time.monotonic() - began
        self.address = self._said("output.log").partition("ready: ")[2].split()[0].partition(",")[0]


CLUSTERS: dict[str, type[ApacheKafkaTrio] | type[PenstockTrio]] = {
    each.name: each for each in (ApacheKafkaTrio, PenstockTrio)
}
