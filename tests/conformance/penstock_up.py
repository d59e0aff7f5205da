"""A Penstock broker as a process: `penstock up --ephemeral --port 0`, ready when it says so on its standard output."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from pathlib import Path

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 20


class PenstockUp:
    """`with PenstockUp(directory) as broker: broker.bootstrap`. `settings` are passed on as `--set name=value`."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        self._log = directory / "penstock.err"
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = ""

    def __enter__(self) -> PenstockUp:
        command = [str(Path(sys.executable).parent / "penstock"), "up", "--ephemeral", "--port", "0"]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        try:
            self.bootstrap = self._await_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def _await_ready(self) -> str:
        assert self._process is not None and self._process.stdout is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        said = b""
        while time.monotonic() < deadline:
            if not select.select([self._process.stdout], [], [], 0.2)[0]:
                continue
            chunk = self._process.stdout.read1()
            assert chunk, f"penstock up ended with {self._process.wait()}:\n{said.decode()}{self._log.read_text()}"
            said += chunk
            for line in said.decode().splitlines(keepends=True):
                if line.startswith("ready: ") and line.endswith("\n"):
                    return line.removeprefix("ready: ").strip()
        raise AssertionError(f"penstock up was not ready in {START_TIMEOUT_S} s:\n{said.decode()}")
