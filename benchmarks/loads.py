"""The load generators, called as programs that answer in JSON: benchmarks/load, built with Go, and transactions."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from servers import LOAD, REPOSITORY, Running, ServerFailed

SOURCE = REPOSITORY / "benchmarks" / "load"
TRANSACTIONAL = REPOSITORY / "benchmarks" / "transactional.py"
BUILD_TIMEOUT_S = 300
LOAD_TIMEOUT_S = 300


@dataclass(frozen=True)
class Measured:
    """What the load reported, and what the server spent on it meanwhile."""

    result: dict[str, Any]
    client_cpu_s: float
    server_cpu_s: float
    server_kernel_s: float
    """the system's part of it"""


def build() -> None:
    """Go keeps what it built: the second time this takes a fraction of a second."""
    go = shutil.which("go")
    if go is None:
        raise ServerFailed("the load generator is written in Go: install Go 1.22 or later (the package `golang`)")
    LOAD.parent.mkdir(parents=True, exist_ok=True)
    command = [go, "build", "-o", str(LOAD), "."]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise ServerFailed(f"the load generator does not build:\n{done.stderr}")


def arguments(**options: object) -> list[str]:
    """`batch_records=5, verify=True` as `-batch-records=5 -verify=true`."""
    return [f"-{name.replace('_', '-')}={_text(value)}" for name, value in options.items()]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def load(server: Running, mode: str, **options: object) -> Measured:
    """Run one load to its end; an error code in any answer fails it."""
    return _run(server, [str(LOAD), mode, *arguments(server=server.address, **options)])


def transactions(server: Running, **options: object) -> Measured:
    """Producers that commit one transaction after the other, for some seconds."""
    return _run(server, [sys.executable, str(TRANSACTIONAL), *arguments(server=server.address, **options)])


def _run(server: Running, command: list[str]) -> Measured:
    before = server.usage()
    done = subprocess.run(command, capture_output=True, text=True, timeout=LOAD_TIMEOUT_S, check=False)
    after = server.usage()
    if done.returncode != 0:
        raise ServerFailed(f"{server.name}: {' '.join(command)}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    return Measured(
        answer["result"], answer["client_cpu_s"], after.cpu_s - before.cpu_s, after.kernel_s - before.kernel_s
    )


class IdleConnections:
    """Connections that are open and silent for as long as the block runs."""

    def __init__(self, server: Running, count: int, topic: str) -> None:
        options = arguments(server=server.address, connections=count, topic=topic, seconds=LOAD_TIMEOUT_S)
        self.command = [str(LOAD), "idle", *options]

    def __enter__(self) -> "IdleConnections":
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise ServerFailed(f"{' '.join(self.command)}: {self.process.communicate()[1].strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate(timeout=60)
