"""The conformance tests, all of them, against real processes: none failed, none skipped. Counted by client and by tool.

The suites that other clients bring (librdkafka's, franz-go's) are built outside the repository: docs/conformance.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

ROOT = Path(__file__).resolve().parent.parent
TESTS = "tests/conformance"
FOREIGN = {"confluent": "confluent-kafka", "kafka-python": "kafka-python", "aiokafka": "aiokafka"}
BY_FILE = {
    "test_apache_tools": "Apache's command-line tools",
    "test_client": "penstock.client",
    "test_wire": "penstock.wire",
    "test_cli": "penstock's command line",
}


def run(tests: str = TESTS) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="penstock-conformance-") as scratch:
        report = Path(scratch) / "report.xml"
        # In one process: the runs of Apache's tools reach the report from there alone.
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not long", "-p", "no:xdist", tests]
        done = subprocess.run(
            [*command, f"--junitxml={report}"],
            cwd=ROOT,
            env={**os.environ, "PENSTOCK_REQUIRE_ALL": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert report.exists(), f"pytest wrote no report:\n{(done.stdout + done.stderr)[-2000:]}"
        root = ElementTree.parse(report).getroot()
    passed, bad = _count(root)
    assert done.returncode == 0 and not bad, f"{len(bad)} did not pass: {'; '.join(bad[:5])}"
    return {
        "passed": sum(passed.values()),
        "failed": 0,
        "skipped": 0,
        "by client": dict(sorted(passed.items())),
        "runs by Apache's tool": dict(sorted(_tool_runs(root).items())),
    }


def _count(report: Element) -> tuple[Counter[str], list[str]]:
    passed: Counter[str] = Counter()
    bad = []
    for case in report.iter("testcase"):
        if any(case.find(kind) is not None for kind in ("skipped", "failure", "error")):
            bad.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            passed[_client(case)] += 1
    return passed, bad


def _client(case: Element) -> str:
    """Whose test it is, and whether it ran on Apache Kafka, which tells what is right."""
    file = case.get("classname", "").rpartition(".")[2]
    leg = case.get("name", "").rpartition("[")[2].rstrip("]")
    if file == "test_foreign_clients":
        kind = next(full for short, full in FOREIGN.items() if short in leg)
    else:
        kind = next((kind for prefix, kind in BY_FILE.items() if file.startswith(prefix)), file.removeprefix("test_"))
    return f"{kind}, on Apache Kafka" if "apache" in leg.split("-") else kind


def _tool_runs(report: Element) -> Counter[str]:
    runs: Counter[str] = Counter()
    for one in report.iter("property"):
        name = one.get("name", "")
        if name.startswith("tool "):
            runs[name.removeprefix("tool ")] += int(one.get("value", "0"))
    return runs
