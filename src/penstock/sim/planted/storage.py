"""Planted bugs of the log and its disk, which one broker shows."""

from __future__ import annotations

from typing import Any

from penstock.base.errors import DecodeError
from penstock.base.ports import Disk
from penstock.core.log import names, recover, snapshots
from penstock.core.log.epochs import LeaderEpochs
from penstock.core.log.log import Log
from penstock.core.log.segment import Segment
from penstock.core.log.sync import Durability, SyncWork
from penstock.core.replication.partition import Partition
from penstock.sim.planted.bug import Bug, Patch


def _forgive(self: Log, error: OSError) -> None:
    """The next sync will tell."""


def _write_on(self: Segment, data: Any) -> None:
    """What was written of it stays, and nobody is told."""
    self.file.write(data)


def _covered(self: Durability, work: SyncWork) -> None:
    """Every file that the sync had is durable, also one that was written to while it ran."""
    done = {id(file) for file in work.files}
    self._files = [(file, since) for file, since in self._files if id(file) not in done]
    self._names_synced = max(self._names_synced, work.names_version)
    self._epochs_saved = max(self._epochs_saved, work.epochs_version)
    self._own_name_synced = True
    if work.generation == self._generation:
        self.synced_offset = max(self.synced_offset, work.end_offset)


def _run_without_small(self: SyncWork) -> None:
    """Small files are written in place and reach the disk when they do."""
    for file in self.files:
        file.sync()
    for path, content in self.small:
        small = self.disk.open(path, create=True)
        small.truncate(0)
        small.write(content)
    for directory in self.directories:
        self.disk.sync_directory(directory)


def _believe_epochs(disk: Disk, directory: str) -> tuple[LeaderEpochs, bool]:
    """An unreadable checkpoint is an empty one."""
    try:
        return LeaderEpochs.decode(disk.read(f"{directory}/{names.EPOCHS}")), True
    except (FileNotFoundError, DecodeError):
        return LeaderEpochs(), True


def _advance_at_once(self: Partition) -> bool:
    """Appended is committed, synced or not."""
    before = self.high_watermark
    if self.leading is None:
        return False
    self.high_watermark = max(before, self.leading.committed(self.log.end_offset, self.log.end_offset))
    return self.high_watermark > before


def _learn_nothing(*_: Any) -> None:
    """What a producer wrote is not learned from the log."""


_read = Partition.read


def _read_to_the_end(self: Partition, *args: Any, **more: Any) -> Any:
    """A consumer is given what lies behind the watermark too."""
    told, self.high_watermark = self.high_watermark, self.log.end_offset
    try:
        return _read(self, *args, **more)
    finally:
        self.high_watermark = told


_POWER = {"faults": ("power", "torn"), "fault_every_ms": 300, "fault_ms": 200}
_SYNC_ERRORS = {"faults": ("sync-error",), "fault_every_ms": 300, "fault_ms": 1_000, "think_ms": 2}
_SHORT_WRITES = {"faults": ("write-error",), "fault_every_ms": 300, "fault_ms": 1_000, "think_ms": 2}

STORAGE_BUGS = (
    Bug(
        "roll-during-sync",
        "found by this simulator",
        "a segment closed while its sync ran counts as synced, with what came after",
        (Patch(Durability, "on_synced", _covered),),
        ("S1", "S5", "history", "L2"),
        within=10,
        options=_POWER | {"segment_bytes": 1_000, "producers": 3, "think_ms": 2, "job_us": 20_000},
    ),
    Bug(
        "fsync-retry",
        "fsyncgate (PostgreSQL, 2018)",
        "a failed sync is tried again, and its success is believed",
        (Patch(Log, "on_sync_failed", _forgive),),
        ("S1", "S5", "history", "L2"),
        seed=2,
        within=10,
        options=_SYNC_ERRORS,
    ),
    Bug(
        "append-after-error",
        "KAFKA-10778",
        "a log goes on after a write that failed half-way",
        (Patch(Segment, "write", _write_on),),
        ("S1", "S4", "S5", "R14", "history"),
        seed=2,
        within=10,
        options=_SHORT_WRITES,
    ),
    Bug(
        "epochs-not-synced",
        "KAFKA-15046, KAFKA-16541",
        "the leader epoch checkpoint is not synced, and an unreadable one is taken for empty",
        (Patch(SyncWork, "run", _run_without_small), Patch(recover, "_read_epochs", _believe_epochs)),
        ("R16",),
        within=10,
        options=_POWER | {"segment_bytes": 1_000},
    ),
    Bug(
        "ack-before-sync",
        "flush.messages=1 as Apache Kafka has it: the watermark does not wait for the disk",
        "the watermark counts what is not synced",
        (Patch(Partition, "advance", _advance_at_once),),
        ("R6", "S3", "R11"),
        seed=2,
        within=3,
        events=1_000,
    ),
    Bug(
        "read-past-watermark",
        "KAFKA-9196, KAFKA-727",
        "consumers are given records that are not committed",
        (Patch(Partition, "read", _read_to_the_end),),
        ("R13", "history"),
        seed=3,
        within=20,
        options=_POWER | {"readers": 2, "job_us": 20_000, "think_ms": 2},
    ),
    Bug(
        "producers-forgotten",
        "KAFKA-3968 and its kin: state that a crash takes",
        "recovery does not learn the producers' sequences from the log",
        (Patch(snapshots, "learn", _learn_nothing),),
        ("P1", "P4"),
        within=5,
        options={"faults": ("kill",), "fault_every_ms": 300, "fault_ms": 200, "think_ms": 2},
    ),
)
