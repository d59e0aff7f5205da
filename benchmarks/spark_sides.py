"""The two formats that are compared, each a session in a process of its own that waits while the other is measured."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import processes
from servers import REPOSITORY, ServerFailed
from spark_report import THEIRS

WORKER = Path(__file__).with_name("spark_worker.py")
CONNECTORS = REPOSITORY / ".cache" / "spark-connector"
CORES = 2

START_TIMEOUT_S = 180.0
COMMAND_TIMEOUT_S = 1_800.0
STOP_TIMEOUT_S = 60.0
SAMPLE_S = 0.05
TASKS = "pyspark.worker"
"""the module that runs tasks; Spark has others for planning."""


@dataclass(frozen=True)
class Measured:
    """`seconds` by the session's own clock; `cpu_s` of the JVM and its Python workers together."""

    seconds: float
    cpu_s: float
    answer: dict[str, Any]


class Side:
    """A session, by its format. What it says beside its answers is in `output.log` of its directory."""

    def __init__(self, source: str, directory: Path, memory: str) -> None:
        self.name = source
        self._log = directory / "output.log"
        arguments = [source, str(CORES), memory, str(directory), *([connector_jars()] if source == THEIRS else [])]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(WORKER), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        try:
            self._answer(START_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": command, **arguments}) + "\n")
            self.process.stdin.flush()
            return self._answer(COMMAND_TIMEOUT_S)
        except BrokenPipeError:
            raise self._failed("ended") from None

    def measure(self, command: str, **arguments: Any) -> Measured:
        before = processes.usage(self.process.pid).cpu_s
        answer = self.ask(command, **arguments)
        return Measured(answer["seconds"], processes.usage(self.process.pid).cpu_s - before, answer)

    def close(self) -> None:
        """The end of its input is the end of the session; what does not end by itself is killed."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(STOP_TIMEOUT_S)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(STOP_TIMEOUT_S)

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise self._failed("ended" if ready else f"did not answer within {timeout_s:.0f} s")
        answer: dict[str, Any] = json.loads(line)
        if "failure" in answer:
            raise self._failed(f"failed: {answer['failure'][-4000:]}")
        return answer

    def _failed(self, what: str) -> ServerFailed:
        output = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        return ServerFailed(f"the session of format({self.name!r}) {what}; its last output:\n{output}")


def connector_version() -> str:
    """Spark's connector is published with each Spark: the one of the Spark that is installed."""
    return metadata.version("pyspark")


def connector_jars() -> str:
    place = CONNECTORS / connector_version() / "libs"
    jars = sorted(str(jar) for jar in place.glob("*.jar"))
    if not any("spark-sql-kafka" in jar for jar in jars):
        raise ServerFailed(f"no connector in {place}: `python tools/fetch_spark_connector.py` brings it")
    return ",".join(jars)


class PythonMemory:
    """Resident memory of a session's Python workers, those that run tasks, looked at again and again in the block.

    Pages that they share since their fork are counted in each: what is told is a bound.
    """

    def __init__(self, side: Side) -> None:
        self._pid = side.process.pid
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self.workers_bytes = 0
        """of all together, at the worst moment."""
        self.all_bytes = 0
        """of every Python process below the JVM when the block ends, also those that plan; shared pages once."""

    def __enter__(self) -> PythonMemory:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()
        self.all_bytes = sum(_share_bytes(pid) for pid in _python_processes(self._pid))

    def _look(self) -> None:
        while not self._done.is_set():
            self.workers_bytes = max(self.workers_bytes, sum(map(_resident_bytes, _workers(self._pid))))
            time.sleep(SAMPLE_S)


def _workers(pid: int) -> list[int]:
    """The children of the process that Spark forks the workers of tasks from."""
    family = [one for one in _python_processes(pid) if _read(f"/proc/{one}/cmdline").rstrip("\0").endswith(TASKS)]
    return [one for one in family if _parent(one) in family]


def _python_processes(pid: int) -> list[int]:
    """Below the JVM; the process itself is the driver's."""
    return [one for one in processes.descendants(pid)[1:] if _read(f"/proc/{one}/comm").startswith("python")]


def _parent(pid: int) -> int:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def _resident_bytes(pid: int) -> int:
    pages = _read(f"/proc/{pid}/statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def _share_bytes(pid: int) -> int:
    """A page that n processes have in common counts as its nth part."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(path: str) -> str:
    """Empty where the process ended in between."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
