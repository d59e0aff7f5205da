"""A broker process whose memory, log and life the tests watch, and the good client that runs beside the bad ones."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from tests.bad_input.raw_client import RawClient, fetch_one, produce_one
from tests.conformance.penstock_up import PenstockUp

UNEXPECTED = ("request failed", "Traceback", "Fatal error", "never retrieved", "Exception in callback")
"""what a broker's log says only where something went wrong that nobody foresaw"""
PROBE_TOPIC = "probe"
PROBE_PAUSE_S = 0.01
PROBE_TIMEOUT_S = 15.0


class WatchedBroker(PenstockUp):
    """`penstock up --ephemeral --port 0` with `settings`; `with` waits until it is ready."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(directory, settings)
        self.log_path = self._log

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def rss_bytes(self) -> int:
        """What the process has in memory now."""
        assert self._process is not None
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the broker has no memory: it is gone")

    def connect(self, timeout_s: float = 10.0) -> RawClient:
        return RawClient(self.address, timeout_s)

    def unexpected_log_lines(self) -> list[str]:
        lines = self.log_path.read_text(errors="replace").splitlines()
        return [line for line in lines if any(words in line for words in UNEXPECTED)]


class Probe:
    """Produces a batch and fetches it back, over and over, on a thread of its own; the first trouble ends it."""

    def __init__(self, broker: WatchedBroker) -> None:
        self._broker = broker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)
        self.cycles = 0
        self.slowest_s = 0.0
        self.failure: BaseException | None = None

    def start(self) -> Probe:
        self._thread.start()
        self.await_cycles(1)
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PROBE_TIMEOUT_S)

    def await_cycles(self, count: int) -> None:
        """Until so many more whole cycles have begun and ended."""
        goal = self.cycles + count
        deadline = time.monotonic() + PROBE_TIMEOUT_S
        while self.cycles < goal:
            assert self.failure is None, f"the good client was disturbed: {self.failure!r}"
            assert time.monotonic() < deadline, f"the good client made no progress in {PROBE_TIMEOUT_S} s"
            self._stop.wait(0.005)

    def _run(self) -> None:
        try:
            with self._broker.connect(PROBE_TIMEOUT_S) as client:
                while not self._stop.wait(PROBE_PAUSE_S):
                    began = time.monotonic()
                    value = b"%d" % self.cycles
                    offset = produce_one(client, PROBE_TOPIC, value)
                    assert fetch_one(client, PROBE_TOPIC, offset) == value
                    self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                    self.cycles += 1
        except BaseException as trouble:
            self.failure = trouble
