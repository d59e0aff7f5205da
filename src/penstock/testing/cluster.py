"""`Cluster`: a broker in this process, or several, each on a thread of its own, with data that goes away.

with Cluster(nodes=3) as cluster:
    Producer(cluster.bootstrap_servers)
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from penstock.base.ids import id_text, random_id
from penstock.broker.embedded import Embedded
from penstock.broker.nodes import VOTERS_MAX, copies, free_ports, node_settings
from penstock.broker.properties import parse_properties
from penstock.broker.system import SystemRandom

HOST = "127.0.0.1"
QUICK: dict[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""What makes a test quick without changing what a client can see of the protocol."""

MEMORY_DIRECTORY = "/dev/shm"


class Cluster:
    """Starts on entering, in a few milliseconds; everything it wrote is removed on leaving.

    `config` takes Kafka's broker configuration names. With `data_dir` the data stays, and a later cluster of as many
    nodes on the same directory finds it again. With three nodes or more, topics have three copies unless they are
    made with fewer.
    """

    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        *,
        nodes: int = 1,
        data_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        assert nodes >= 1, "a cluster has at least one node"
        self.config = {**QUICK, **copies(nodes), **(config or {})}
        self.nodes = list(range(1, nodes + 1))
        """the ids of its nodes"""
        self._kept = os.fspath(data_dir) if data_dir is not None else None
        self._directory: str | None = None
        self._settings: dict[int, dict[str, str]] = {}
        self._brokers: dict[int, Embedded] = {}
        self._addresses: dict[int, str] = {}

    @property
    def bootstrap_servers(self) -> str:
        """Of all nodes, those that are stopped at the moment included."""
        assert self._addresses, "the cluster is not running: use it as `with Cluster() as cluster:`"
        return ",".join(self._addresses[node] for node in self.nodes)

    @property
    def data_dir(self) -> str:
        assert self._directory is not None, "the cluster is not running: use it as `with Cluster() as cluster:`"
        return self._directory

    def start(self) -> Self:
        assert not self._addresses, "the cluster is running already"
        self._directory = self._kept or tempfile.mkdtemp(prefix="penstock-", dir=_quick_directory())
        self._settings = self._configurations(self._directory)
        try:
            self._begin(self.nodes)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Safe to repeat."""
        brokers, self._brokers, self._addresses = self._brokers, {}, {}
        try:
            for broker in brokers.values():
                broker.ask_to_stop()
            for broker in brokers.values():
                broker.stop()
        finally:
            self._remove_data()

    def stop_node(self, node: int) -> None:
        """Cleanly; the others go on."""
        self._brokers.pop(node).stop()

    def start_node(self, node: int) -> None:
        """Again on its data, at the address that it had."""
        assert node in self._addresses and node not in self._brokers, f"node {node} is not stopped"
        self._begin([node])

    def restart(self) -> Self:
        """Stops a broker cleanly and starts it again on the same data, one after the other. The port of a single one
        may be another.
        """
        assert self._brokers, "the cluster is not running"
        for node in self.nodes:
            self.stop_node(node)
            self.start_node(node)
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _begin(self, nodes: list[int]) -> None:
        """Together, for a node of several is ready only when most of them are there."""
        self._brokers.update({node: Embedded(self._settings[node], self._node_directory(node)) for node in nodes})
        ready = {node: self._brokers[node].begin() for node in nodes}
        self._addresses.update({node: address.result() for node, address in ready.items()})

    def _configurations(self, directory: str) -> dict[int, dict[str, str]]:
        if len(self.nodes) == 1:
            return {1: dict(self.config)}
        cluster_id = _known_cluster_id(directory) or id_text(random_id(SystemRandom()))
        ports = dict(zip(self.nodes, free_ports(len(self.nodes), SystemRandom(), HOST), strict=True))
        settings = node_settings(ports, self.nodes[:VOTERS_MAX], HOST, cluster_id)
        return {node: {**settings[node], **self.config} for node in self.nodes}

    def _node_directory(self, node: int) -> str:
        """A single broker's data lies in the directory itself."""
        return self.data_dir if len(self.nodes) == 1 else os.path.join(self.data_dir, str(node))

    def _remove_data(self) -> None:
        directory, self._directory = self._directory, None
        if directory is not None and self._kept is None:
            shutil.rmtree(directory, ignore_errors=True)


def _known_cluster_id(directory: str) -> str | None:
    """Of an earlier cluster on the same directory."""
    try:
        with open(os.path.join(directory, "1", "meta.properties")) as file:
            return parse_properties(file.read())["cluster.id"]
    except FileNotFoundError:
        return None


def _quick_directory() -> str | None:
    """Memory where there is some: a test's data need not reach a disk. None is the system's temporary directory."""
    return MEMORY_DIRECTORY if os.access(MEMORY_DIRECTORY, os.W_OK) else None
