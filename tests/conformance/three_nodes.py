"""Three brokers as processes of their own, each with its configuration: to be killed and brought back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient

from penstock.base.ids import id_text
from penstock.broker.nodes import copies, free_ports, node_settings
from penstock.broker.system import SystemRandom
from penstock.protocol.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.generated.metadata_response import MetadataResponsePartition
from tests.bad_input.raw_client import RawClient

NODES = (1, 2, 3)
HOST = "127.0.0.1"
LIMIT_S = 40
METADATA_VERSION = 12


class ThreeNodes:
    """`with ThreeNodes(directory) as nodes: nodes.bootstrap`. `settings` hold for all; node i is in rack r<i>."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        self.directory = directory
        ports = dict(zip(NODES, free_ports(len(NODES), SystemRandom(), HOST), strict=True))
        self.addresses = {node: f"{HOST}:{ports[node].client}" for node in NODES}
        self.bootstrap = ",".join(self.addresses.values())
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for node, values in node_settings(ports, list(NODES), HOST, id_text(b"three-nodes-here")).items():
            extra = {"log.dirs": str(directory / str(node)), "broker.rack": f"r{node}", **(settings or {})}
            lines = {**copies(len(NODES)), "offsets.topic.num.partitions": "3", **values, **extra}.items()
            self.properties(node).write_text("".join(f"{name}={value}\n" for name, value in lines))

    def properties(self, node: int) -> Path:
        return self.directory / f"{node}.properties"

    def log_file(self, node: int, topic: str, index: int) -> bytes:
        """The first segment of a copy."""
        return (self.directory / str(node) / f"{topic}-{index}" / f"{0:020d}.log").read_bytes()

    def __enter__(self) -> ThreeNodes:
        try:
            for node in NODES:
                self.start(node)
            for node in NODES:
                self.await_port(node)
            client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            until(lambda: len(client.list_topics(timeout=LIMIT_S).brokers) == len(NODES), "all are in the cluster")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, node: int) -> None:
        command = [str(Path(sys.executable).parent / "penstock"), "broker", "--config", str(self.properties(node))]
        with (self.directory / f"{node}.out").open("ab") as out:
            self._processes[node] = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def kill(self, node: int) -> None:
        process = self._processes.pop(node)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def await_port(self, node: int) -> None:
        """It listens for clients once the controller has let it in."""
        host, _, port = self.addresses[node].rpartition(":")

        def answers() -> bool:
            assert self._processes[node].poll() is None, (self.directory / f"{node}.out").read_text()
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
            except OSError:
                return False
            return True

        until(answers, f"node {node} listens")

    def await_topic(self, topic: str) -> None:
        """Brokers hear of a topic, and of who leads it, a moment after it was made."""

        def told_by(node: int) -> bool:
            told = partitions_told(self.addresses[node], topic)
            return bool(told) and all(one.leader_id in NODES for one in told)

        until(lambda: all(told_by(node) for node in self._processes), f"all have heard of {topic}")


def partitions_told(address: str, topic: str) -> list[MetadataResponsePartition]:
    """What this one broker knows of a topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    host, _, port = address.rpartition(":")
    with RawClient((host, int(port)), timeout_s=LIMIT_S) as client:
        [told] = client.call(request, METADATA_VERSION).topics
    return sorted(told.partitions, key=lambda one: one.partition_index)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {LIMIT_S} s: {what}"
        time.sleep(0.05)
