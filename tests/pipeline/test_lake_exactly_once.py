"""Loads by Spark whose driver is killed with SIGKILL, again and again: the table has every record, and once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.pipeline.java import JavaMissing, find_java
from penstock.pipeline.lake import open_table
from penstock.pipeline.lake.tables import KINDS
from tests.components import require_component
from tests.pipeline.conftest import Running

ROOT = Path(__file__).parents[2]
RECORDS = 3_000
PARTITIONS = 2
LONG = {
    "parquet": [
        ("tasks", "after", 1),
        ("pending", "after", 2),
        ("move", "after", 1),
        ("entry", "before", 1),
        ("entry", "after", 1),
        ("writing", "", 1),
    ],
    "delta": [
        ("writing", "", 1),
        ("tasks", "after", 1),
        ("transaction", "before", 1),
        ("transaction", "after", 1),
        ("transaction", "after", 2),
    ],
    "iceberg": [
        ("writing", "", 1),
        ("tasks", "after", 1),
        ("add_files", "after", 1),
        ("catalogue", "before", 1),
        ("catalogue", "after", 1),
    ],
}


def run(*arguments: object, step: tuple[str, str, int] = ("none", "", 0)) -> int:
    """The load's exit; whatever it leaves behind, Java too, ends with it."""
    command = [sys.executable, "-m", "tests.pipeline.lake_run", *map(str, arguments), *map(str, step)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            _, errors = process.communicate(timeout=180)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode in (0, -signal.SIGKILL), errors[-3000:]
    return process.returncode


def check_killed(kind: str, kills: list[tuple[str, str, int]], cluster: Running, to: Path) -> None:
    try:
        find_java()
    except JavaMissing as missing:
        require_component(False, "Java", str(missing))
    topic = cluster.create_topic(partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        values = [f'{{"number": {number}}}' for number in range(partition, RECORDS, PARTITIONS)]
        cluster.produce(topic, values, partition=partition)
    for step in kills:
        assert run(kind, cluster.bootstrap, topic, to, step=step) == -signal.SIGKILL, step
    assert run(kind, cluster.bootstrap, topic, to) == 0
    table = open_table(str(to), kind)
    rows = [row for batch in table.read(["number", "_partition", "_offset"]) for row in batch.to_pylist()]
    assert sorted(row["number"] for row in rows) == list(range(RECORDS))
    assert all(row["number"] == row["_offset"] * PARTITIONS + row["_partition"] for row in rows)


@pytest.mark.timeout(600)
def test_a_driver_that_is_killed_in_the_middle_of_its_commit_loads_nothing_twice(
    penstock_cluster: Running, tmp_path: Path
) -> None:
    check_killed("parquet", [("move", "after", 2)], penstock_cluster, tmp_path / "table")


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_driver_that_is_killed_at_every_step_loads_every_record_once(
    kind: str, penstock_cluster: Running, tmp_path: Path
) -> None:
    check_killed(kind, LONG[kind], penstock_cluster, tmp_path / "table")
