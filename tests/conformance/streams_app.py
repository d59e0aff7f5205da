"""Instances of a Kafka Streams application, `java/WordCount.java`, each a process of its own; and what they count."""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.components import require_component
from tests.conformance.apache import VERSION
from tests.conformance.apache_tools import JVM_OPTIONS

PROGRAM = Path(__file__).parent / "java" / "WordCount.java"
JARS = Path(__file__).parents[2] / ".cache" / "kafka-streams" / VERSION / "libs"
LIMIT_S = 90
PARTITIONS = 4


class WordCount:
    """`with WordCount(bootstrap, name, directory) as app: app.wait_for("RUNNING")`."""

    def __init__(self, bootstrap: str, name: str, directory: Path, **config: str) -> None:
        there = (JARS / f"kafka-streams-{VERSION}.jar").is_file()
        require_component(shutil.which("java") is not None, "Java", "install a JDK 17 or newer")
        require_component(there, f"Kafka Streams {VERSION}", "run `python tools/fetch_streams.py`")
        named = {name.replace("_", "."): value for name, value in config.items()}
        settings = {"bootstrap.servers": bootstrap, "application.id": name, "state.dir": str(directory), **named}
        command = ["java", *JVM_OPTIONS, "-cp", f"{JARS}/*", str(PROGRAM), f"{name}-in", f"{name}-out"]
        command += [f"{key}={value}" for key, value in settings.items()]
        self._said: queue.Queue[str] = queue.Queue()
        self._heard: list[str] = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> WordCount:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait_for(self, line: str, limit_s: float = LIMIT_S) -> str:
        """The first line from here on that begins so."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                said = self._said.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"it did not say {line!r} but {self._heard}") from None
            self._heard.append(said)
            assert line == "failed" or not said.startswith("failed"), said
            if said.startswith(line):
                return said

    def tasks(self) -> list[str]:
        """As `active:0_1`, sorted."""
        self._tell("tasks")
        return sorted(self.wait_for("tasks").split()[1:])

    def stop(self) -> None:
        """As an operator does."""
        self._tell("stop")
        assert self._process.wait(LIMIT_S) == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                stream.close()

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line.strip())


class Words:
    """What goes into an application, and what has to come out."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._bootstrap = bootstrap
        self._name = name
        self.counts: dict[str, int] = {}
        topics = [NewTopic(f"{name}-in", PARTITIONS, 1), NewTopic(f"{name}-out", PARTITIONS, 1)]
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for made in admin.create_topics(topics).values():
            made.result(30)
        self._producer = Producer({"bootstrap.servers": bootstrap})

    def write(self, lines: int) -> None:
        for at in range(lines):
            words = ["all", f"of-{at % 5}", f"and-{at % 7}"]
            self._producer.produce(f"{self._name}-in", " ".join(words), partition=at % PARTITIONS)
            for word in words:
                self.counts[word] = self.counts.get(word, 0) + 1
        assert self._producer.flush(30) == 0

    def expect_counted(self) -> None:
        """The last count of each word is right, and no count was ever above it."""
        told: dict[str, int] = {}
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "unused", "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(f"{self._name}-out", at, 0) for at in range(PARTITIONS)])
            deadline = time.monotonic() + LIMIT_S
            while told != self.counts:
                assert time.monotonic() < deadline, f"{told} instead of {self.counts}"
                message = consumer.poll(0.5)
                if message is not None and not message.error():
                    word, count = message.key().decode(), int.from_bytes(message.value(), "big")
                    assert count <= self.counts[word], f"{word} was counted twice"
                    told[word] = count
        finally:
            consumer.close()


def wait_until_alone(app: WordCount) -> None:
    """Until it has all tasks: that it runs does not say so."""
    wanted = sorted(f"active:{part}_{at}" for part in (0, 1) for at in range(PARTITIONS))
    deadline = time.monotonic() + LIMIT_S
    while (tasks := app.tasks()) != wanted:
        assert time.monotonic() < deadline, tasks
        time.sleep(0.5)


def wait_until_shared(first: WordCount, second: WordCount, standbys: int = 0) -> tuple[list[str], list[str]]:
    """Until both have tasks and together all: eight, of two subtopologies, and so many copies, which come later."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        here, there = first.tasks(), second.tasks()
        active = [task for task in here + there if task.startswith("active")]
        copies = len(here) + len(there) - len(active)
        if here and there and len(active) == len(set(active)) == 2 * PARTITIONS and copies >= standbys:
            return here, there
        assert time.monotonic() < deadline, f"{here} and {there}"
        time.sleep(0.5)
