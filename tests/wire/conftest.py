"""Apache Kafka's own message classes as an oracle: one Java process, compiled when the jars and a JDK are there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka_jars import require_jars

from tests.components import require_component

SOURCE = Path(__file__).parent / "oracle" / "Oracle.java"
JVM_TIMEOUT_S = 100

Consult = Callable[[list[str]], list[str]]


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Consult:
    """Lines in, as many lines out: see oracle/Oracle.java."""
    jars = require_jars()
    require_component(shutil.which("javac") is not None, "A JDK", "install the package `openjdk-17-jdk-headless`")
    classes = tmp_path_factory.mktemp("oracle")
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCE)], check=True, timeout=JVM_TIMEOUT_S)
    command = ["java", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*:{classes}", "Oracle"]

    def consult(lines: list[str]) -> list[str]:
        text = "".join(f"{line}\n" for line in lines).encode()
        run = subprocess.run(command, input=text, capture_output=True, check=True, timeout=JVM_TIMEOUT_S)
        return run.stdout.decode().splitlines()

    return consult
