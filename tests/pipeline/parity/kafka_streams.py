"""Apache Kafka Streams itself: the Java program beside this file, compiled and run on the scenarios.

`python -m tests.pipeline.parity.kafka_streams` records anew what Kafka Streams makes of every scenario.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.components import require_component
from tests.pipeline.parity.scenarios import Output, Scenario, files, load, render

VERSION = "4.3.0"
JARS = Path(__file__).parents[3] / ".cache" / "kafka-streams" / VERSION / "libs"
SOURCES = sorted(Path(__file__).parent.glob("*.java"))
MEMORY = Path("/dev/shm")
TIMEOUT_S = 100


def missing_component() -> tuple[str, str] | None:
    """The name of what is not there, and how to get it."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        return "Java's compiler", "install a JDK 17 or newer"
    if not (JARS / f"kafka-streams-test-utils-{VERSION}.jar").is_file():
        return f"Kafka Streams {VERSION}", "run `python tools/fetch_streams.py`"
    return None


def require() -> None:
    if missing := missing_component():
        require_component(False, *missing)


def outputs_of(scenarios: list[Scenario]) -> dict[str, list[Output]]:
    """By the scenario's name, what Kafka Streams wrote. One Java process runs them all."""
    # Its state stores sync every file they make: in memory that takes a fifth of the time.
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as scratch:
        return _run_in(Path(scratch), scenarios)


def _run_in(scratch: Path, scenarios: list[Scenario]) -> dict[str, list[Output]]:
    class_path = f"{JARS}/*"
    _run("javac", "-cp", class_path, "-d", str(scratch), *(str(source) for source in SOURCES))
    asked, answered = scratch / "asked.json", scratch / "answered.json"
    asked.write_text(json.dumps(scenarios))
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", f"-Djava.io.tmpdir={scratch}"]
    _run("java", *options, "-cp", f"{scratch}:{class_path}", "Parity", str(asked), str(answered))
    outputs: dict[str, list[Output]] = json.loads(answered.read_text())
    return outputs


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")


def recorded() -> dict[Path, str]:
    """Every scenario file as it reads when its outputs are recorded now."""
    families = {path: load(path) for path in files()}
    outputs = outputs_of([scenario for family in families.values() for scenario in family])
    for family in families.values():
        for scenario in family:
            scenario["outputs"] = outputs[scenario["name"]]
    return {path: render(family) for path, family in families.items()}


def main() -> int:
    if missing := missing_component():
        print(f"{missing[0]} is missing: {missing[1]}", file=sys.stderr)  # noqa: T201 (a command prints)
        return 1
    for path, text in recorded().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
