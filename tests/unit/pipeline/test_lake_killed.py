"""Writers of every kind of table, killed with SIGKILL one after the other in the middle of their commits."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.pipeline.lake import open_table
from tests.unit.pipeline.lake_rows import BATCH_ROWS, BATCHES, QUERY, SCHEMA, offsets, write

ROOT = Path(__file__).parents[3]
KILLS = {
    "parquet": [("pending", "after", 2), ("move", "after", 2), ("entry", "before", 1), ("entry", "after", 2)],
    "delta": [("transaction", "before", 1), ("transaction", "after", 1), ("transaction", "after", 2)],
    "iceberg": [("add_files", "after", 1), ("catalogue", "before", 1), ("catalogue", "after", 1)],
}


def run(kind: str, directory: Path, attempt: str, step: str = "none", when: str = "", calls: int = 0) -> int:
    command = [sys.executable, "-m", "tests.unit.pipeline.lake_killed", kind, str(directory), attempt]
    done = subprocess.run([*command, step, when, str(calls)], cwd=ROOT, timeout=100, capture_output=True, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.parametrize("kind", list(KILLS))
def test_every_row_is_there_once_however_often_its_writer_was_killed(kind: str, tmp_path: Path) -> None:
    for number, (step, when, calls) in enumerate(KILLS[kind]):
        assert run(kind, tmp_path / "orders", f"killed{number}", step, when, calls) == -signal.SIGKILL, (step, when)
        table = open_table(str(tmp_path / "orders"), kind)
        seen = offsets(table) if table.exists else []
        assert seen == list(range(len(seen))) and len(seen) % BATCH_ROWS == 0, (step, when)
    assert run(kind, tmp_path / "orders", "last") == 0
    assert offsets(open_table(str(tmp_path / "orders"), kind)) == list(range(BATCHES * BATCH_ROWS))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_of_two_drivers_that_both_found_a_batch_missing_one_commits(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(f"penstock.pipeline.lake.{kind}_table")
    first, second = (open_table(str(tmp_path / "orders"), kind) for _ in range(2))
    first.prepare(SCHEMA, "day")
    mine, theirs = write(first, 0, "first"), write(second, 0, "second")
    real = module._holds
    overtaken = [False]

    def holds(*asked: Any) -> bool:
        answer = bool(real(*asked))
        if not overtaken[0]:
            overtaken[0] = True
            second.commit(QUERY, 0, theirs)
        return answer

    monkeypatch.setattr(module, "_holds", holds)
    first.commit(QUERY, 0, mine)
    assert overtaken[0]
    assert offsets(first) == list(range(BATCH_ROWS))
    assert all("second" in uri for uri in first.files())
