"""A Parquet table whose writer dies at every single step, before and after it: what each reader sees then and later."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.pipeline.lake import open_table
from penstock.pipeline.lake.files import Files
from penstock.pipeline.lake.parquet_log import ParquetLog
from penstock.pipeline.lake.place import Place
from tests.unit.pipeline.lake_rows import BATCH_ROWS, BATCHES, offsets, run

STEPS = [
    (Place, "put_new"),
    (Place, "move"),
    (Place, "remove"),
    (Place, "remove_directory"),
    (ParquetLog, "append"),
    (Files, "close"),
]
ALL = list(range(BATCHES * BATCH_ROWS))


class Killed(BaseException):
    """In place of SIGKILL: nothing catches it, and all that the writer knew is gone."""


class Countdown:
    """Every step of a writer, one after the other; the one that is chosen is the last."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.taken: list[str] = []

    def watch(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            self._count(f"before {name}")
            result = real(*args, **kwargs)
            self._count(f"after {name}")
            return result

        monkeypatch.setattr(owner, name, step)

    def _count(self, step: str) -> None:
        self.taken.append(step)
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed(step)


@pytest.fixture
def countdown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Countdown]:
    made = Countdown()
    for owner, name in STEPS:
        made.watch(monkeypatch, owner, name)
    yield made


def plain(directory: Path) -> list[int]:
    """What a reader that knows nothing of the log finds."""
    paths = glob.glob(f"{directory}/**/*.parquet", recursive=True)
    return sorted(offset for path in paths for offset in pq.read_table(path)["_offset"].to_pylist())


def logged(directory: Path) -> list[int]:
    return offsets(open_table(str(directory)))


def check_midway(directory: Path, step: str, *, compact: bool) -> None:
    if not open_table(str(directory)).exists:
        assert plain(directory) == []
        return
    seen = logged(directory)
    assert seen == ALL[: len(seen)] and len(seen) % BATCH_ROWS == 0, f"part of a batch in the log, {step}"
    if not compact:
        files = plain(directory)
        assert len(files) == len(set(files)), f"rows double in the directory, {step}"


@pytest.mark.parametrize("compact", [False, True], ids=["loads", "loads and a compaction"])
def test_whatever_step_is_the_last_one_the_table_is_right_after_the_next_start(
    compact: bool, countdown: Countdown, tmp_path: Path
) -> None:
    run(open_table(str(tmp_path / "whole")), "x", compact=compact)
    steps = list(countdown.taken)
    assert len(steps) > 50
    for number, name in enumerate(steps):
        directory = tmp_path / str(number)
        countdown.left = number
        with pytest.raises(Killed, match=name):
            run(open_table(str(directory)), "killed", compact=compact)
        countdown.left = None
        check_midway(directory, f"step {number}, {name}", compact=compact)
        run(open_table(str(directory)), "again", compact=compact)
        assert logged(directory) == ALL, f"step {number}, {name}"
        assert plain(directory) == ALL, f"step {number}, {name}"
        assert not list(directory.glob("_staging/*/*")) and not list(directory.glob("_penstock_log/*.pending"))


def test_of_two_drivers_at_the_same_batch_one_commits(countdown: Countdown, tmp_path: Path) -> None:
    """The second one has asked whether the batch is there before the first one has begun to commit it; whatever the
    first has come to when the second goes on, the rows are there once."""
    from tests.unit.pipeline.lake_rows import QUERY, SCHEMA, write

    for number in range(40):
        directory = tmp_path / str(number)
        first, second = open_table(str(directory)), open_table(str(directory))
        first.prepare(SCHEMA, "day")
        mine, theirs = write(first, 0, "first"), write(second, 0, "second")
        countdown.left = number
        try:
            first.commit(QUERY, 0, mine)
            ended = True
        except Killed:
            ended = False
        countdown.left = None
        second.commit(QUERY, 0, theirs)
        assert logged(directory) == ALL[:BATCH_ROWS], number
        assert plain(directory) == ALL[:BATCH_ROWS], number
        if ended:
            return
    raise AssertionError("the commit has more steps than were tried")
