"""Apache Kafka's command-line tools, as bin/kafka-*.sh call them, from the jars."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

JARS = Path(__file__).resolve().parent.parent / ".cache" / "kafka" / "4.3.0" / "libs"
TIMEOUT_S = 60
MAIN_CLASSES = {
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
}


class KafkaTools:
    def __init__(self, bootstrap: str, scratch: Path) -> None:
        self.used: dict[str, None] = {}
        self._bootstrap = bootstrap
        self._scratch = scratch

    def run(self, tool: str, *arguments: str) -> str:
        """Its output; it must succeed."""
        self.used[tool] = None
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{JARS}/*"]
        command = [*java, MAIN_CLASSES[tool], "--bootstrap-server", self._bootstrap, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, f"{tool} {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def file(self, name: str, content: object) -> str:
        path = self._scratch / name
        path.write_text(json.dumps(content))
        return str(path)
