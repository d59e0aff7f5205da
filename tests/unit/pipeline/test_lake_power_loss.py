"""Loads onto a disk whose power goes: at every sync, with what was not synced gone, or there by its name alone.

What a table has taken is there afterwards, and a load that goes on from there leaves every row once. Bytes that SQLite
syncs by itself are taken as they are.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.pipeline.lake import open_table
from penstock.pipeline.lake.files import DataFile
from penstock.pipeline.lake.loading import Batches
from penstock.pipeline.lake.tables import KINDS
from tests.unit.pipeline.lake_rows import BATCH_ROWS, QUERY, SCHEMA, offsets, write

BATCHES = 2
ALL = list(range(BATCHES * BATCH_ROWS))
STRIDES = {"parquet": 1, "delta": 1, "iceberg": 3}
"""which moments are tried: opening an Iceberg table and its catalogue takes a second."""
SYNCS_ITSELF = "catalog.db"

Names = dict[int, dict[str, tuple[int, bool]]]
"""directory to name to what it names, by their inodes, and whether that is a directory."""


@dataclass
class Moment:
    """What the disk has for sure, when the power goes."""

    names: Names
    """that were synced."""
    seen: Names
    """that are there."""
    content: dict[int, bytes]
    taken: int
    """batches whose commit has returned."""


@dataclass
class Disk:
    """Watches what is synced below a directory."""

    root: Path
    names: Names = field(default_factory=dict)
    content: dict[int, bytes] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    taken: int = 0
    held: list[int] = field(default_factory=list)
    """descriptors: as long as they are open, no other file gets their inode."""

    def fsync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.held.append(os.dup(descriptor))
        inode = os.fstat(descriptor).st_ino
        if path.is_dir():
            self.names[inode] = _listed(path)
        else:
            self.content[inode] = path.read_bytes()
        self.look()

    def look(self) -> None:
        seen: Names = {self.root.stat().st_ino: _listed(self.root)}
        for path in self.root.rglob("*"):
            if path.is_dir():
                seen[path.stat().st_ino] = _listed(path)
            elif path.name == SYNCS_ITSELF:
                self.content[path.stat().st_ino] = path.read_bytes()
        moment = Moment(dict(self.names), seen, dict(self.content), self.taken)
        if not self.moments or self.moments[-1] != moment:
            self.moments.append(moment)


def _listed(directory: Path) -> dict[str, tuple[int, bool]]:
    return {entry.name: (entry.inode(), entry.is_dir()) for entry in os.scandir(directory)}


def restore(moment: Moment, names: Names, inode: int, to: Path) -> None:
    """A name without synced bytes is an empty file."""
    to.mkdir()
    for name, (child, is_directory) in names.get(inode, {}).items():
        if is_directory:
            restore(moment, names, child, to / name)
        else:
            (to / name).write_bytes(moment.content.get(child, b""))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    root = tmp_path / "disk"
    root.mkdir()
    made = Disk(root)
    yield made
    for descriptor in made.held:
        os.close(descriptor)


def loaded(kind: str, to: Path, first: int, attempt: str, disk: Disk | None = None) -> None:
    table = open_table(str(to), kind)
    table.prepare(SCHEMA, "day")
    for batch in range(first, BATCHES):
        if not table.settle(QUERY, batch):
            files = write(table, batch, attempt)
            table.commit(QUERY, batch, files)
            if disk is not None:
                disk.taken = batch + 1
                disk.look()
            table.tidy(QUERY, batch, files)
    if kind == "parquet":
        table.compact()


@pytest.mark.parametrize("names_stay", [False, True], ids=["nothing stays", "names stay"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_the_table_has_taken_is_there_when_the_power_goes(
    kind: str, names_stay: bool, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = disk.root / "lake" / "orders"
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", disk.fsync)
        loaded(kind, to, 0, "first", disk)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    base = disk.root.stat().st_ino
    assert len(disk.moments) > 20 and disk.moments[-1].taken == BATCHES
    for number, moment in list(enumerate(disk.moments))[:: STRIDES[kind]]:
        shutil.rmtree(disk.root)
        restore(moment, moment.seen if names_stay else moment.names, base, disk.root)
        loaded(kind, to, moment.taken, f"again{number}")
        assert offsets(open_table(str(to), kind)) == ALL, f"moment {number} of {len(disk.moments)}"
        assert kind != "parquet" or found_by_directory(to) == ALL, f"moment {number} of {len(disk.moments)}"


def found_by_directory(directory: Path) -> list[int]:
    """By a reader that knows nothing of the log."""
    return sorted(
        offset for path in directory.rglob("*.parquet") for offset in pq.read_table(path)["_offset"].to_pylist()
    )


def test_the_checkpoint_knows_the_batch_for_good_before_the_table_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its number could stand for other offsets, and the table would refuse them as rows that it has."""
    checkpoint = tmp_path / "checkpoint"
    (checkpoint / "offsets").mkdir(parents=True)
    for name in ("metadata", "offsets/7", "offsets/.7.crc"):
        (checkpoint / name).write_text("told by Spark")
    happened: list[str] = []

    class Taking:
        def settle(self, query: str, batch: int) -> bool:
            return False

        def commit(self, query: str, batch: int, files: object) -> None:
            happened.append("commit")

        def tidy(self, query: str, batch: int, files: object) -> None:
            happened.append("tidy")

    class Written(Batches):
        def _write(self, frame: object, query: str, batch: int) -> list[DataFile]:
            return [DataFile("part.parquet", 3, 100)]

    monkeypatch.setattr(os, "fsync", lambda fd: happened.append(os.readlink(f"/proc/self/fd/{fd}")))
    batches = Written(Taking(), None, None, "day", None, False, f"file:{checkpoint}")
    batches._load(None, QUERY, 7)
    synced = happened[: happened.index("commit")]
    assert set(synced) == {
        str(checkpoint / name) for name in ("metadata", "offsets/7", "offsets/.7.crc", "offsets")
    } | {
        str(checkpoint),
        str(tmp_path),
    }
    assert synced.index(str(checkpoint / "offsets/7")) < synced.index(str(checkpoint / "offsets"))
