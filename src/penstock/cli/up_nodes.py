"""Several brokers of `penstock up`, each a process of its own: started together, watched, stopped together.

A broker that ends is told on stderr and left alone; whoever brings it back by hand also stops it.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import IO

from penstock.cli.failures import Failure
from penstock.cli.running import holder
from penstock.cli.up_layout import Layout

STOP_TIMEOUT_S = 30.0
_READY = b"ready: "
_ENVIRONMENT_OF_BROKERS = "KAFKA_"
_PR_SET_PDEATHSIG = 1


class Node:
    """A broker's process. `address` is told once it is ready."""

    def __init__(self, layout: Layout, number: int) -> None:
        self.number = number
        self.properties = layout.properties_path(number)
        self.address: str | None = None
        self.process = _spawn(self.properties)
        self.handle = os.pidfd_open(self.process.pid)
        self._said = b""

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def hear(self) -> None:
        """There is something on its stdout."""
        self._said += os.read(self.stdout.fileno(), 4096)
        line, end, _ = self._said.partition(b"\n")
        if end and line.startswith(_READY):
            self.address = line.removeprefix(_READY).decode()

    def end(self) -> str:
        """How it ended; it has."""
        code = self.process.wait()
        os.close(self.handle)
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def run_nodes(layout: Layout, numbers: list[int], announce: Callable[[str], None]) -> int:
    """Until SIGTERM, Ctrl-C, or the end of the last one."""
    nodes: list[Node] = []
    with Attention() as attention:
        try:
            for number in numbers:
                nodes.append(Node(layout, number))
                attention.heed(nodes[-1])
            if not attention.until_ready(nodes):
                return 0
            announce(",".join(str(node.address) for node in nodes))
            return attention.until_end(nodes)
        finally:
            _stop(nodes, layout)


class Attention:
    """What the parent waits for: the words of its nodes, their ends, and signals."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._asked_to_stop = False

    def __enter__(self) -> Attention:
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._waker.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        self._selector.close()
        self._woken.close()
        self._waker.close()

    def heed(self, node: Node) -> None:
        self._selector.register(node.stdout, selectors.EVENT_READ, (node, node.hear))
        self._selector.register(node.handle, selectors.EVENT_READ, (node, None))

    def until_ready(self, nodes: list[Node]) -> bool:
        """False where it was asked to stop first."""
        while not all(node.address for node in nodes):
            for node in self._ended():
                raise Failure(
                    f"node {node.number} {node.end()} before it was ready",
                    f"what it said is above; its configuration is {node.properties}",
                )
            if self._asked_to_stop:
                return False
        return True

    def until_end(self, nodes: list[Node]) -> int:
        alive = len(nodes)
        while not self._asked_to_stop:
            for node in self._ended():
                alive -= 1
                print(
                    f"penstock: node {node.number} (process {node.process.pid}) {node.end()}\n"
                    f"  penstock broker --config {node.properties} brings it back",
                    file=sys.stderr,
                    flush=True,
                )
                if not alive:
                    return 1
        return 0

    def _ended(self) -> list[Node]:
        """Waits until something happens; those that ended."""
        ended = []
        for key, _ in self._selector.select():
            if key.fileobj is self._woken:
                self._woken.recv(64)
                continue
            node, hear = key.data
            if hear is not None and node.address is None:
                hear()
            if hear is None or node.address is not None:
                # A node has one thing to say: later words, and the end of the pipe, tell nothing.
                self._selector.unregister(key.fileobj)
            if hear is None:
                ended.append(node)
        return ended

    def _stop(self, *_: object) -> None:
        self._asked_to_stop = True


def _spawn(properties: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock.cli.main", "broker", "--config", properties]
    # As for one broker, the file is all: KAFKA_* variables are for `penstock broker` by hand.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_ENVIRONMENT_OF_BROKERS)}
    prctl = ctypes.CDLL(None).prctl
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment,
        # A group of its own: Ctrl-C on a terminal reaches the parent, which stops them in its way.
        start_new_session=True,
        # Where the parent is killed, they stop too, cleanly.
        preexec_fn=lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
    )


def _stop(nodes: list[Node], layout: Layout) -> None:
    running = [node for node in nodes if node.process.poll() is None]
    for node in running:
        node.process.terminate()
    for node in running:
        try:
            node.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            node.process.kill()
            print(f"penstock: node {node.number} did not stop within {STOP_TIMEOUT_S:g} s: killed", file=sys.stderr)
    for node in nodes:
        by_hand = holder(layout.node(node.number, "pid"))
        if by_hand is not None:
            print(f"penstock: node {node.number} was started by hand (process {by_hand}) and goes on", file=sys.stderr)
