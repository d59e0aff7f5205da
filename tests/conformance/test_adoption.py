"""The proof of adoption, smaller: a directory goes from Apache Kafka to Penstock, back, and over again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from apache import VERSION, find_jars

from proofs import adoption
from tests.components import require_component


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kill", [pytest.param(False, marks=pytest.mark.long), True], ids=["stopped", "killed"])
def test_a_directory_goes_from_apache_kafka_to_penstock_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: bool
) -> None:
    jars = find_jars()
    require_component(shutil.which("java") is not None, "Java", "install a JDK 17 or newer")
    require_component(jars is not None, f"Apache Kafka {VERSION}", "set PENSTOCK_KAFKA_JARS to its libs directory")
    monkeypatch.setenv("PENSTOCK_KAFKA_JARS", str(jars))
    verified = adoption.hand_over_and_back(tmp_path, 2400, kill)
    assert verified["hand-overs"] == 4
    assert verified["compactions seen"] == 1
