"""The servers that the benchmarks compare: each is started as a process in a directory of its own, on free ports.

Both run with their defaults: Apache Kafka with the JVM options of its own start script and a configuration that sets
roles, listeners, quorum, directory and one copy of internal topics only; Penstock as `penstock up` starts it.
"""

import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

import processes
from ports import free_port

REPOSITORY = Path(__file__).resolve().parent.parent
KAFKA_VERSION = "4.3.0"
KAFKA_LIBS = REPOSITORY / ".cache" / "kafka" / KAFKA_VERSION / "libs"
LOAD = REPOSITORY / ".cache" / "bench" / "load"
PENSTOCK = REPOSITORY / ".venv" / "bin" / "penstock"

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
POLL_S = 0.005

# What kafka-server-start.sh and kafka-run-class.sh pass to the JVM where the user sets nothing.
KAFKA_JVM_OPTIONS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dcom.sun.management.jmxremote",
    "-Dcom.sun.management.jmxremote.authenticate=false",
    "-Dcom.sun.management.jmxremote.ssl=false",
)

# What the server.properties that Kafka is shipped with has for a broker that is alone: three copies of these topics,
# the default, could not be made.
ONE_COPY = "".join(
    f"{name}=1\n"
    for name in (
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    )
)

_API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)


class ServerFailed(Exception):
    """A server did not start, answer or stop; the text ends with the last lines of its output."""


class Server(Protocol):
    name: str

    def version(self) -> str: ...

    def prepare(self, directory: Path, port: int) -> None:
        """What has to be done once before the first start and is not counted as starting."""

    def command(self, directory: Path, port: int) -> list[str]: ...


class ApacheKafka:
    """Apache Kafka as one KRaft node with both roles."""

    name = "kafka"

    def version(self) -> str:
        return KAFKA_VERSION

    def prepare(self, directory: Path, port: int) -> None:
        controller = free_port()
        (directory / "server.properties").write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={directory / 'data'}\n"
            f"{ONE_COPY}"
        )
        options = ["format", "-t", "AAAAAAAAQACAAAAAAAAAAQ", "-c", str(directory / "server.properties")]
        command = [java(), "-cp", f"{KAFKA_LIBS}/*", "kafka.tools.StorageTool", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise ServerFailed(f"kafka-storage format failed: {(done.stdout + done.stderr)[-2000:]}")

    def command(self, directory: Path, port: int) -> list[str]:
        gc_log = f"-Xlog:gc*:file={directory}/kafkaServer-gc.log:time,tags:filecount=10,filesize=100M"
        classpath = ["-cp", f"{KAFKA_LIBS}/*"]
        return [java(), *KAFKA_JVM_OPTIONS, gc_log, *classpath, "kafka.Kafka", f"{directory}/server.properties"]


class Penstock:
    """One Penstock broker; its first start formats the directory, which counts as starting."""

    name = "penstock"

    def version(self) -> str:
        try:
            return metadata.version("penstock")
        except metadata.PackageNotFoundError:
            return "not installed"

    def prepare(self, directory: Path, port: int) -> None:
        if not PENSTOCK.is_file():
            raise ServerFailed(f"{PENSTOCK} is missing: `make setup` installs it")

    def command(self, directory: Path, port: int) -> list[str]:
        return [str(PENSTOCK), "up", "--data", str(directory / "data"), "--port", str(port)]


class NullServer:
    """Answers at once and stores nothing: what is measured against it is the client's own ceiling."""

    name = "null"

    def version(self) -> str:
        return "1"

    def prepare(self, directory: Path, port: int) -> None:
        pass

    def command(self, directory: Path, port: int) -> list[str]:
        return [str(LOAD), "null", "-listen", f"127.0.0.1:{port}"]


SERVERS: dict[str, type[Server]] = {each.name: each for each in (ApacheKafka, Penstock, NullServer)}


@dataclass
class Running:
    """A started server. `start_s` is the time from its spawning until ApiVersions was answered."""

    name: str
    directory: Path
    port: int
    process: subprocess.Popen[bytes]
    start_s: float

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def usage(self) -> processes.Usage:
        return processes.usage(self.process.pid)

    def stop(self) -> float:
        """Ask it to end, as an operator would; the time that it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(f"{self.name} did not stop within {STOP_TIMEOUT_S} s{_tail(self.directory)}") from None
        return time.monotonic() - began

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(STOP_TIMEOUT_S)


def start(server: Server, directory: Path, port: int, ready: Callable[[int], bool] | None = None) -> Running:
    """Start in a prepared directory and wait until the port answers; `ready`: where that is not Kafka's protocol."""
    _raise_file_limit()
    output = (directory / "output.log").open("ab")
    began = time.monotonic()
    process = subprocess.Popen(
        server.command(directory, port),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=directory,
        start_new_session=True,
    )
    output.close()
    running = Running(server.name, directory, port, process, 0.0)
    while not (ready or answers)(port):
        if process.poll() is not None:
            raise ServerFailed(f"{server.name} ended with exit code {process.returncode}{_tail(directory)}")
        if time.monotonic() - began > START_TIMEOUT_S:
            running.kill()
            raise ServerFailed(f"{server.name} did not answer within {START_TIMEOUT_S} s{_tail(directory)}")
        time.sleep(POLL_S)
    running.start_s = time.monotonic() - began
    return running


def answers(port: int) -> bool:
    """Whether ApiVersions is answered there without an error."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2.0) as connection:
            connection.sendall(_API_VERSIONS_V0)
            head = connection.recv(10, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(head) == 10 and struct.unpack_from(">ih", head, 4) == (7, 0)


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    path = f"{home}/bin/java" if home else shutil.which("java")
    if path is None:
        raise ServerFailed("Apache Kafka needs Java 17 or later: install it, or set JAVA_HOME")
    if not KAFKA_LIBS.is_dir():
        raise ServerFailed(f"{KAFKA_LIBS} is missing: `python tools/fetch_kafka.py` brings Apache Kafka's jars")
    return path


def _raise_file_limit() -> None:
    """Both servers may open as many files as the machine's hard limit allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _tail(directory: Path) -> str:
    text = (directory / "output.log").read_text(errors="replace")
    return "; its last output:\n" + "\n".join(text.splitlines()[-20:])
