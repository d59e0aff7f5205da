"""Three nodes, each in a network namespace of its own, on one bridge: links between them can be cut for real.

It needs root, and `ip` of iproute2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from penstock.base.ids import id_text, random_id
from penstock.broker.nodes import copies
from penstock.broker.properties import format_properties
from penstock.broker.system import SystemRandom
from proofs.cluster_up import PENSTOCK, STOP_TIMEOUT_S, ready

PORT = 9092
CONTROLLER_PORT = 9093
SAID_CHARACTERS = 8_000


def available() -> bool:
    return os.geteuid() == 0 and shutil.which("ip") is not None


class SpacedCluster:
    """`with SpacedCluster(directory) as cluster: cluster.bootstrap`, reached from the namespace that we are in."""

    def __init__(self, directory: Path, nodes: int = 3) -> None:
        self.directory = directory
        self.nodes = list(range(1, nodes + 1))
        # Names and addresses of our own: another run may be under way.
        self._mark = f"ps{os.getpid() % 100_000}"
        self._subnet = f"10.213.{os.getpid() % 250 + 1}"
        self._stderr = directory / "brokers.err"
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrap = ",".join(f"{self.host(node)}:{PORT}" for node in self.nodes)

    def __enter__(self) -> SpacedCluster:
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self._lay_cables()
            cluster_id = id_text(random_id(SystemRandom()))
            for node in self.nodes:
                self._start(node, cluster_id)
            for process in self._processes.values():
                ready(process, self._stderr.read_text)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        for node in self.nodes:
            _ip("netns", "del", self._space(node), check=False)
        _ip("link", "del", self._mark, check=False)

    def host(self, node: int) -> str:
        return f"{self._subnet}.{node}"

    def said(self) -> str:
        """The last lines of all brokers."""
        return self._stderr.read_text()[-SAID_CHARACTERS:]

    def controllers(self) -> list[str]:
        return [f"{self.host(node)}:{CONTROLLER_PORT}" for node in self.nodes]

    def unplug(self, node: int) -> None:
        """From everybody, silently: no connection is closed."""
        _ip("link", "set", f"{self._mark}v{node}", "down")

    def plug(self, node: int) -> None:
        _ip("link", "set", f"{self._mark}v{node}", "up")

    def cut_from_peers(self, node: int) -> None:
        """Clients still reach it, the other nodes hear nothing from it any more."""
        for peer in self.nodes:
            if peer != node:
                _ip("-n", self._space(node), "route", "add", "blackhole", f"{self.host(peer)}/32")

    def heal(self, node: int) -> None:
        for peer in self.nodes:
            if peer != node:
                _ip("-n", self._space(node), "route", "del", "blackhole", f"{self.host(peer)}/32")

    def _space(self, node: int) -> str:
        return f"{self._mark}n{node}"

    def _lay_cables(self) -> None:
        _ip("link", "add", self._mark, "type", "bridge")
        _ip("addr", "add", f"{self._subnet}.254/24", "dev", self._mark)
        _ip("link", "set", self._mark, "up")
        for node in self.nodes:
            space, outer, inner = self._space(node), f"{self._mark}v{node}", f"{self._mark}i{node}"
            _ip("netns", "add", space)
            _ip("link", "add", outer, "type", "veth", "peer", "name", inner)
            _ip("link", "set", inner, "netns", space)
            _ip("link", "set", outer, "master", self._mark, "up")
            _ip("-n", space, "addr", "add", f"{self.host(node)}/24", "dev", inner)
            for link in ("lo", inner):
                _ip("-n", space, "link", "set", link, "up")

    def _start(self, node: int, cluster_id: str) -> None:
        properties = self.directory / f"{node}.properties"
        voters = ",".join(f"{one}@{self.host(one)}:{CONTROLLER_PORT}" for one in self.nodes)
        values = {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "listeners": f"PLAINTEXT://{self.host(node)}:{PORT},CONTROLLER://{self.host(node)}:{CONTROLLER_PORT}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "penstock.cluster.id": cluster_id,
            "log.dirs": str(self.directory / str(node)),
            "group.initial.rebalance.delay.ms": "0",
            **copies(len(self.nodes)),
        }
        properties.write_text(format_properties(values))
        command = ["ip", "netns", "exec", self._space(node), PENSTOCK, "broker", "--config", str(properties)]
        with self._stderr.open("ab") as log:
            self._processes[node] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)


def _ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"ip {' '.join(words)}: {done.stderr.strip()}"
