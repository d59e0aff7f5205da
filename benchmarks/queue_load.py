"""The load on queues of benchmarks/queueing: in Java, the language of both projects' own clients, compiled when needed.

One process has the producer and all consumers, each a thread with a connection of its own, on share groups as on
RabbitMQ. What is checked there: every record was accepted exactly once. Records that were delivered again are counted.
"""

import json
import shutil
import subprocess
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from servers import KAFKA_LIBS, REPOSITORY, Running, ServerFailed, java

SOURCE = REPOSITORY / "benchmarks" / "queueing"
CLASSES = REPOSITORY / ".cache" / "bench" / "queue"
RABBIT_CLIENT = "5.25.0"
RABBIT_LIBS = REPOSITORY / ".cache" / "rabbitmq-client" / RABBIT_CLIENT / "libs"
SHARE, RABBIT = "ShareQueue", "RabbitQueue"
JVM_OPTIONS = ("-Xmx1G", "-XX:+UseSerialGC")
COMPILE_TIMEOUT_S = 120
LIMIT_S = 400.0


@dataclass(frozen=True)
class QueueSizes:
    """Seconds of each phase, and what is the same in all of them."""

    warm_s: float = 10.0
    load_s: float = 10.0
    steady_warm_s: float = 3.0
    steady_s: float = 15.0
    consumers: int = 50
    rate: int = 500
    """records a second of the steady phase: well below what any of the queues can do"""
    window: int = 10_000
    """records that may be in the queue or with consumers at full speed"""
    value_bytes: int = 100
    drain_s: int = 60


FULL = QueueSizes()
SHORT = QueueSizes(warm_s=6.0, load_s=6.0, steady_warm_s=2.0, steady_s=8.0)
"""one measurement among many others"""
QUICK = QueueSizes(warm_s=0.5, load_s=1.0, steady_warm_s=0.5, steady_s=1.0)


@dataclass(frozen=True)
class QueueMeasured:
    """What the load reported, and the server's processor time for each record at full speed."""

    result: dict[str, Any]
    cpu_us: float


def measure(server: Running, program: str, sizes: QueueSizes, **options: object) -> QueueMeasured:
    """Run the load to its end. ServerFailed where a record was not accepted, or accepted twice."""
    command = [java(), *JVM_OPTIONS, "-cp", _class_path(program), program]
    wanted = asdict(sizes) | {"server": server.address} | options
    command += [f"{name}={value}" for name, value in wanted.items()]
    with tempfile.TemporaryFile("w+") as errors:
        result, cpu_s = _run(server, command, errors)
        if result is None or result["accepted"] != result["sent"] or result["accepted_twice"]:
            errors.seek(0)
            raise ServerFailed(f"{server.name}: {program}: {result or errors.read()[-3000:]}")
    return QueueMeasured(result, (cpu_s["end load"] - cpu_s["begin load"]) / max(result["load_records"], 1) * 1e6)


def _run(server: Running, command: list[str], errors: IO[str]) -> tuple[dict[str, Any] | None, dict[str, float]]:
    result: dict[str, Any] | None = None
    cpu_s: dict[str, float] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        assert process.stdout is not None
        limit = threading.Timer(LIMIT_S, process.kill)
        limit.start()
        for line in process.stdout:
            if line.startswith("{"):
                result = json.loads(line)
            else:
                cpu_s[line.strip()] = server.usage().cpu_s
        limit.cancel()
    return result, cpu_s


def _class_path(program: str) -> str:
    libraries = [f"{KAFKA_LIBS}/*", *([f"{RABBIT_LIBS}/*"] if program == RABBIT else [])]
    compiled = CLASSES / f"{program}.class"
    sources = [SOURCE / f"{name}.java" for name in ("Ledger", "Queue", "QueueLoad", program)]
    if not compiled.exists() or compiled.stat().st_mtime < max(one.stat().st_mtime for one in sources):
        _compile(":".join(libraries), sources)
    return ":".join([str(CLASSES), *libraries])


def _compile(class_path: str, sources: list[Path]) -> None:
    compiler = shutil.which("javac")
    if compiler is None:
        raise ServerFailed("the load on queues is compiled with a JDK 17 or later: install it, it has `javac`")
    CLASSES.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-d", str(CLASSES), "-cp", class_path, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise ServerFailed(f"the load on queues does not compile:\n{done.stderr}")
