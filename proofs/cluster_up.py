"""`penstock up --nodes N` as a user starts it, and its nodes by number."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.ports import free_port
from penstock.broker.properties import format_properties, parse_properties

PENSTOCK = str(Path(sys.executable).parent / "penstock")
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 40


class ClusterUp:
    """`with ClusterUp(directory, nodes=3) as cluster: cluster.bootstrap`. `settings` are passed on as `--set`."""

    def __init__(self, directory: Path, nodes: int | None = 3, settings: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.bootstrap = ""
        self.ready_s = 0.0
        self.stderr = directory.with_suffix(".err")
        self._by_hand: dict[int, list[subprocess.Popen[bytes]]] = {}
        self._command = [PENSTOCK, "up", "--data", str(directory), "--port", "0", "--host", "127.0.0.1"]
        self._command += ["--nodes", str(nodes)] if nodes is not None else []
        for name, value in (settings or {}).items():
            self._command += ["--set", f"{name}={value}"]
        self.process: subprocess.Popen[bytes]

    def __enter__(self) -> ClusterUp:
        began = time.monotonic()
        with self.stderr.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log)
        try:
            self.bootstrap = ready(self.process, self.said)
        except BaseException:
            self.__exit__()
            raise
        self.ready_s = time.monotonic() - began
        return self

    def __exit__(self, *_: object) -> None:
        processes = [self.process, *(process for lives in self._by_hand.values() for process in lives)]
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(STOP_TIMEOUT_S)

    def said(self) -> str:
        return self.stderr.read_text(errors="replace")

    def pid(self, node: int) -> int:
        return int((self.directory / str(node) / "pid").read_text())

    def properties(self, node: int) -> Path:
        return self.directory / str(node) / "server.properties"

    def controllers(self) -> list[str]:
        """Where the nodes' controllers listen."""
        voters = parse_properties(self.properties(1).read_text())["controller.quorum.voters"]
        return [voter.partition("@")[2] for voter in voters.split(",")]

    def add(self, node: int) -> str:
        """A broker more, without a vote, configured as an operator would from another one's file; its address."""
        address = f"PLAINTEXT://127.0.0.1:{free_port()}"
        data = self.directory / str(node) / "data"
        data.mkdir(parents=True)
        values = parse_properties(self.properties(1).read_text()) | {
            "process.roles": "broker",
            "node.id": str(node),
            "listeners": address,
            "advertised.listeners": address,
            "log.dirs": str(data),
        }
        self.properties(node).write_text(format_properties(values))
        return self.bring_back(node)

    def signal(self, node: int, number: signal.Signals) -> None:
        os.kill(self.pid(node), number)

    def kill(self, node: int) -> None:
        """SIGKILL, and gone when this returns."""
        pid = self.pid(node)
        handle = os.pidfd_open(pid)
        try:
            os.kill(pid, signal.SIGKILL)
            select.select([handle], [], [], STOP_TIMEOUT_S)
        finally:
            os.close(handle)

    def stop_node(self, node: int) -> None:
        """SIGTERM, and gone when this returns."""
        handle = os.pidfd_open(self.pid(node))
        try:
            self.signal(node, signal.SIGTERM)
            assert select.select([handle], [], [], STOP_TIMEOUT_S)[0], f"node {node} did not stop"
        finally:
            os.close(handle)

    def bring_back(self, node: int) -> str:
        """By hand, as stderr says; its address, once it is ready."""
        return ready(self.bring_back_soon(node), self.said)

    def bring_back_soon(self, node: int) -> subprocess.Popen[bytes]:
        """Without waiting: where most nodes are away, none is ready before another one is back."""
        command = [PENSTOCK, "broker", "--config", str(self.properties(node))]
        with self.stderr.open("ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        self._by_hand.setdefault(node, []).append(process)
        return process


def ready(process: subprocess.Popen[bytes], said: Callable[[], str]) -> str:
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], START_TIMEOUT_S)[0]:
        raise AssertionError(f"not ready in {START_TIMEOUT_S} s:\n{said()}")
    line = process.stdout.readline().decode()
    assert line.startswith("ready: "), f"{line!r}:\n{said()}"
    return line.removeprefix("ready: ").strip()
