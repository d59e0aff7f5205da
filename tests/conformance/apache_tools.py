"""Apache Kafka's command-line tools as a user runs them: what bin/kafka-*.sh calls, from the jars."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from apache import VERSION, find_jars

from tests.components import require_component

TIMEOUT_S = 60
# A tool lives for a second: it is not worth its compiler's second stage, nor a parallel collector.
JVM_OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
MAIN_CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
}


class Output(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self.out.splitlines() if line.strip()]

    @property
    def table(self) -> list[list[str]]:
        """The cells of each line, the heading included."""
        return [line.split() for line in self.lines]


class ApacheTools:
    """`tools.run("kafka-topics", "--list").lines`. Every tool is told the cluster's address.

    With an `archive`, the first run leaves its classes there, which halves the start of those that follow."""

    def __init__(self, bootstrap: str, archive: Path | None = None) -> None:
        jars = find_jars()
        require_component(shutil.which("java") is not None, "Java", "install a JDK 17 or newer")
        require_component(jars is not None, f"Apache Kafka {VERSION}", "set PENSTOCK_KAFKA_JARS to its libs directory")
        self.bootstrap = bootstrap
        self.runs: Counter[str] = Counter()
        """How often each tool was run."""
        self._class_path = f"{jars}/*"
        self._archive = archive

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Output:
        """The tool must succeed."""
        output = self.attempt(tool, *arguments, stdin=stdin)
        assert output.code == 0, f"{tool} {' '.join(arguments)} ended with {output.code}:\n{output.out}\n{output.err}"
        return output

    def attempt(self, tool: str, *arguments: str, stdin: str = "") -> Output:
        address = ("--bootstrap-server", self.bootstrap)
        # Of the tools with subcommands, only this one takes the address after them.
        self.runs[tool] += 1
        words = (*arguments, *address) if tool == "kafka-cluster" else (*address, *arguments)
        return self.java(MAIN_CLASSES[tool], *words, stdin=stdin)

    def dump(self, *files: Path, options: tuple[str, ...] = ()) -> Output:
        """kafka-dump-log, which needs no cluster."""
        names = ",".join(str(file) for file in files)
        self.runs["kafka-dump-log"] += 1
        output = self.java(MAIN_CLASSES["kafka-dump-log"], *options, "--files", names)
        assert output.code == 0, f"kafka-dump-log of {names} ended with {output.code}:\n{output.out}\n{output.err}"
        return output

    def report(self, record: Callable[[str, object], None]) -> None:
        """For the test report: which tool was run, and how often."""
        for tool, count in sorted(self.runs.items()):
            record(f"tool {tool}", count)

    def java(self, main_class: str, *arguments: str, stdin: str = "") -> Output:
        command = ["java", *JVM_OPTIONS, *self._sharing(), "-cp", self._class_path, main_class, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S)
        return Output(done.returncode, done.stdout, done.stderr)

    def _sharing(self) -> list[str]:
        if self._archive is None:
            return []
        if self._archive.exists():
            return [f"-XX:SharedArchiveFile={self._archive}"]
        return [f"-XX:ArchiveClassesAtExit={self._archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
