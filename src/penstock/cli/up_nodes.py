"""Several brokers of `penstock up`, each a process of its own: started together, watched, stopped together.

They are forked from this process once it has loaded what a broker is made of, so that a cluster loads it once and not
once a node. A broker that ends is told on stderr and left alone; whoever brings it back by hand also stops it.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import select
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from penstock.cli.failures import Failure
from penstock.cli.main import main
from penstock.cli.running import holder
from penstock.cli.up_layout import Layout

STOP_TIMEOUT_S = 30.0
NOTE_AFTER_S = 10.0
"""those who are not ready by then are told, once"""
_READY = b"ready: "
_ENVIRONMENT_OF_BROKERS = "KAFKA_"
_PR_SET_PDEATHSIG = 1
_STOPPING = (signal.SIGTERM, signal.SIGINT)
_FIRST_OWN_FILE = 3
"""after stdin, stdout and stderr"""
_LOADED_ONCE = (
    "penstock.cli.broker",
    "penstock.broker.main",
    "penstock.broker.quorum_peers",
    "penstock.broker.fetcher",
)
"""what every node of a cluster needs, beyond what a broker alone does"""


class Node:
    """A broker's process. `address` is told once it is ready."""

    def __init__(self, layout: Layout, number: int) -> None:
        self.number = number
        self.properties = layout.properties_path(number)
        self.address: str | None = None
        self.pid, self.stdout = _fork(number, self.properties)
        self.handle = os.pidfd_open(self.pid)
        self._exit_code: int | None = None
        self._said = b""

    def hear(self) -> None:
        """There is something on its stdout."""
        self._said += os.read(self.stdout, 4096)
        line, end, _ = self._said.partition(b"\n")
        if end and line.startswith(_READY):
            self.address = line.removeprefix(_READY).decode()

    def was_ready(self) -> bool:
        """Of a node that has ended, whose last words may not have been heard so far."""
        if self.address is None:
            self.hear()
        return self.address is not None

    def signal(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self.handle, number)

    def has_ended(self, timeout_s: float = 0.0) -> bool:
        """Whether it has, or does within the time."""
        if self._exit_code is None and select.select([self.handle], [], [], timeout_s)[0]:
            self._exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._exit_code is not None

    def end(self) -> str:
        """How it ended; it has."""
        assert self.has_ended() and self._exit_code is not None
        code = self._exit_code
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def run_nodes(layout: Layout, numbers: list[int], keep: Callable[[], None], announce: Callable[[str], None]) -> int:
    """Until SIGTERM, Ctrl-C, or the end of the last one. `keep` is called where a node got ready."""
    nodes: list[Node] = []
    _load_brokers()
    with Attention() as attention:
        try:
            for number in numbers:
                nodes.append(Node(layout, number))
                attention.heed(nodes[-1])
            if not attention.until_ready(nodes):
                if attention.asked_by == signal.SIGINT:
                    raise KeyboardInterrupt
                return 0
            announce(",".join(str(node.address) for node in nodes))
            return attention.until_end(nodes)
        finally:
            _stop(nodes, layout)
            if any(node.was_ready() for node in nodes):
                keep()


class Attention:
    """What the parent waits for: the words of its nodes, their ends, and signals."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self.asked_by: signal.Signals | None = None
        """the signal that asks to stop"""

    def __enter__(self) -> Attention:
        self._waker.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._waker.fileno())
        for number in _STOPPING:
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
        left_s: float | None = NOTE_AFTER_S
        began_s = time.monotonic()
        while missing := [node for node in nodes if node.address is None]:
            if left_s is not None:
                left_s = began_s + NOTE_AFTER_S - time.monotonic()
                if left_s <= 0:
                    _tell_missing(missing)
                    left_s = None
            for node in self._ended(left_s):
                raise Failure(f"node {node.number} {node.end()} before it was ready", "what it said is above")
            if self.asked_by is not None:
                return False
        return True

    def until_end(self, nodes: list[Node]) -> int:
        alive = len(nodes)
        while self.asked_by is None:
            for node in self._ended():
                alive -= 1
                print(
                    f"penstock: node {node.number} (process {node.pid}) {node.end()}\n"
                    f"  penstock broker --config {node.properties} brings it back",
                    file=sys.stderr,
                    flush=True,
                )
                if not alive:
                    return 1
        return 0

    def _ended(self, timeout_s: float | None = None) -> list[Node]:
        """Waits until something happens, or for as long; those that ended."""
        ended = []
        for key, _ in self._selector.select(timeout_s):
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

    def _stop(self, number: int, _: object) -> None:
        self.asked_by = self.asked_by or signal.Signals(number)


class Voice(io.TextIOWrapper):
    """The stderr of one node among several: every line says whose it is."""

    def __init__(self, node: int) -> None:
        super().__init__(sys.stderr.buffer, sys.stderr.encoding, "backslashreplace", line_buffering=True)
        self._name = f"[{node}] "
        self._is_new_line = True

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            # A line goes out as a whole, with its end: others write to the same place.
            super().write(self._name + line if self._is_new_line else line)
            self._is_new_line = line.endswith("\n")
        return len(text)


def _tell_missing(nodes: list[Node]) -> None:
    named = ", ".join(f"{node.number} (process {node.pid})" for node in nodes)
    print(
        f"penstock: not ready after {NOTE_AFTER_S:g} s: node{'s' if len(nodes) > 1 else ''} {named}\n"
        f"  what they said is above; their configurations are {', '.join(node.properties for node in nodes)}\n"
        "  the wait goes on; Ctrl-C ends it",
        file=sys.stderr,
        flush=True,
    )


def _load_brokers() -> None:
    for name in _LOADED_ONCE:
        import_module(name)
    # Nobody's garbage collector looks at it again, which would also make a copy of it for each process.
    gc.freeze()


def _fork(number: int, properties: str) -> tuple[int, int]:
    """The process of a broker, and where its stdout is read."""
    heard, said = os.pipe()
    prctl = ctypes.CDLL(None).prctl
    # Held back until the new process has its own answer to them: the parent's would be lost on it.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    pid = os.fork()
    if pid == 0:
        # Where the parent is killed, they stop too, cleanly.
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        _be_broker(number, properties, said)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    os.close(said)
    return pid, heard


def _be_broker(node: int, properties: str, said: int) -> None:
    """In the new process, which never comes back from here: nothing that is the parent's may be done twice."""
    code = 1
    try:
        # A session of its own: Ctrl-C on a terminal reaches the parent, which stops them in its way.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _STOPPING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(said, 1)
        os.closerange(_FIRST_OWN_FILE, os.sysconf("SC_OPEN_MAX"))
        sys.stderr = Voice(node)
        # As for one broker, the file is all: KAFKA_* variables are for `penstock broker` by hand.
        for name in [name for name in os.environ if name.startswith(_ENVIRONMENT_OF_BROKERS)]:
            del os.environ[name]
        code = main(["broker", "--config", properties])
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _stop(nodes: list[Node], layout: Layout) -> None:
    running = [node for node in nodes if not node.has_ended()]
    for node in running:
        node.signal(signal.SIGTERM)
    for node in running:
        if not node.has_ended(STOP_TIMEOUT_S):
            node.signal(signal.SIGKILL)
            print(f"penstock: node {node.number} did not stop within {STOP_TIMEOUT_S:g} s: killed", file=sys.stderr)
    for node in nodes:
        by_hand = holder(layout.node(node.number, "pid"))
        if by_hand is not None:
            print(f"penstock: node {node.number} was started by hand (process {by_hand}) and goes on", file=sys.stderr)
