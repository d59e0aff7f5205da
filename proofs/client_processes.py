"""Clients as processes of their own: killed, paused, and started again whenever one has ended."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from pathlib import Path

from proofs.either_broker import ROOT, kafka_jars

STOP_TIMEOUT_S = 60
JVM_OPTIONS = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]


class ClientProcesses:
    """`with ClientProcesses(commands, log) as clients:` one process for each command; what they say goes to `log`."""

    def __init__(self, commands: list[list[str]], log: Path) -> None:
        self._commands = commands
        self._log = log
        self._processes: list[subprocess.Popen[bytes]] = []
        self.ended: Counter[int] = Counter()
        """how those ended that nobody killed, by exit status"""

    def __len__(self) -> int:
        return len(self._commands)

    def __enter__(self) -> ClientProcesses:
        self._processes = [self._start(command) for command in self._commands]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def tend(self) -> None:
        """Start those again that have ended."""
        for at, process in enumerate(self._processes):
            status = process.poll()
            if status is not None:
                self.ended[status] += 1
                self._processes[at] = self._start(self._commands[at])

    def kill(self, at: int) -> None:
        """SIGKILL, and another in its place at once."""
        self._processes[at].kill()
        self._processes[at].wait()
        self._processes[at] = self._start(self._commands[at])

    def pause(self, at: int) -> None:
        self._processes[at].send_signal(signal.SIGSTOP)

    def resume(self, at: int) -> None:
        self._processes[at].send_signal(signal.SIGCONT)

    def said(self) -> str:
        """The end of it."""
        return self._log.read_text(errors="replace")[-4_000:]

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)


def java_program(source: Path, place: Path) -> list[str]:
    """Compile it against Apache's jars into `place`: the command that runs it, its arguments still to be added."""
    jars = kafka_jars()
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(place), str(source)], check=True, timeout=120)
    return ["java", *JVM_OPTIONS, "-cp", f"{place}:{jars}/*", source.stem]
