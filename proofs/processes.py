"""A broker as a process of its own: started, killed, started again on the same directory; what it uses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

TOLD_BYTES = 2_000
"""of what a broker wrote that did not start"""


class BrokerProcess:
    """`penstock up` on a directory. The port is fixed, so that clients find it again after a restart."""

    def __init__(self, directory: Path, port: int, **settings: str) -> None:
        self.directory = directory
        self.port = port
        self.settings = settings
        self.process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "penstock.cli.main",
            "up",
            "--data",
            str(self.directory),
            "--port",
            str(self.port),
        ]
        command += ["--host", "127.0.0.1"]
        for name, value in self.settings.items():
            command += ["--set", f"{name.replace('_', '.')}={value}"]
        log = self.directory.with_suffix(".log")
        with log.open("a") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("ready: "):
            raise RuntimeError(f"the broker did not start: {line!r}; its last words:\n{log.read_text()[-TOLD_BYTES:]}")

    def kill(self) -> None:
        """SIGKILL: no warning, no last words."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def resident_bytes(self) -> int:
        assert self.process is not None
        return resident_bytes(self.process.pid)

    def open_files(self) -> int:
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self) -> float:
        assert self.process is not None
        return cpu_seconds(self.process.pid)


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no memory")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
