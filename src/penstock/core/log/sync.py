"""What must reach the disk, as a value: made on the loop, run in a thread, its end reported back to the log.

Everything appended before it was made is durable when it has run. The first error is final: a second sync may
"succeed" over pages that the system has dropped (fsyncgate).
"""

from __future__ import annotations

from penstock.base.ports import Disk, File
from penstock.core.log import names
from penstock.core.log.epochs import LeaderEpochs


class SyncWork:
    """Shares nothing with the log but files, of which it only asks `sync`."""

    __slots__ = ("directories", "disk", "end_offset", "epochs_version", "files", "generation", "names_version", "small")

    def __init__(self, disk: Disk, end_offset: int, generation: int) -> None:
        self.disk = disk
        self.end_offset = end_offset
        """The log is durable up to here afterwards."""
        self.generation = generation
        """How often the log had been cut: what is in flight while it is cut says nothing of what is written after."""
        self.files: list[File] = []
        self.directories: list[str] = []
        self.small: list[tuple[str, bytes]] = []
        """(path, content) of small files to be replaced."""
        self.names_version = 0
        self.epochs_version = 0

    def run(self) -> None:
        """Blocks. OSError as the system says it."""
        for file in self.files:
            file.sync()
        for path, content in self.small:
            self.disk.replace(path, content)
        for directory in self.directories:
            self.disk.sync_directory(directory)


class Durability:
    """What of a log is durable and what is not. Work that never ends is no harm: what it was to sync stays due."""

    __slots__ = (
        "_directory",
        "_disk",
        "_epochs_saved",
        "_files",
        "_generation",
        "_names_synced",
        "_names_version",
        "_own_name_synced",
        "since_ms",
        "synced_offset",
    )

    def __init__(self, disk: Disk, directory: str, files: list[File], epochs_saved: int) -> None:
        self._disk = disk
        self._directory = directory
        self._names_version = 1
        self._files = [(file, self._names_version) for file in files]
        """What is due, with the version at which it became so. A sync that began before then has not covered it, though
        it may have synced the same file: the active segment is appended to, and closed, while a sync of it runs."""
        self._names_synced = 0
        self._epochs_saved = epochs_saved
        self._own_name_synced = False
        """Not known to be durable: the log may have been made, closed empty or killed, and found again."""
        self._generation = 0
        self.since_ms = 0
        """When the oldest append that is not synced was made; 0 where there is none."""
        self.synced_offset = 0

    @property
    def cuts(self) -> int:
        """How often the log was cut."""
        return self._generation

    @property
    def changes(self) -> int:
        """How often files were made, renamed or removed."""
        return self._names_version

    def wrote(self, files: list[File]) -> None:
        """These were written and must be durable before the synced offset moves."""
        self._names_version += 1
        self._files += [(file, self._names_version) for file in files]

    def renamed(self) -> None:
        """Names in the directory have changed."""
        self._names_version += 1

    def cut(self, end_offset: int) -> None:
        self._generation += 1
        self._names_version += 1
        self.synced_offset = min(self.synced_offset, end_offset)

    def work(self, end_offset: int, active: File, epochs: LeaderEpochs) -> SyncWork | None:
        if self.synced_offset == end_offset and not self._files and self._names_synced == self._names_version:
            return None
        work = SyncWork(self._disk, end_offset, self._generation)
        work.files = [*(file for file, _ in self._files), active]
        work.names_version, work.epochs_version = self._names_version, epochs.version
        if epochs.version != self._epochs_saved:
            work.small.append((f"{self._directory}/{names.EPOCHS}", epochs.encode()))
        if self._names_synced != self._names_version:
            work.directories.append(self._directory)
        if not self._own_name_synced:
            work.directories.append(self._directory.rpartition("/")[0])
        self.since_ms = 0
        return work

    def due(self, end_offset: int, flush_messages: int, flush_ms: int, now_ms: int) -> bool:
        waiting = end_offset - self.synced_offset
        if waiting >= flush_messages or self._files:
            return True
        return waiting > 0 and now_ms - self.since_ms >= flush_ms

    def on_synced(self, work: SyncWork) -> None:
        done = {id(file) for file in work.files}
        self._files = [
            (file, since) for file, since in self._files if id(file) not in done or since > work.names_version
        ]
        self._names_synced = max(self._names_synced, work.names_version)
        self._epochs_saved = max(self._epochs_saved, work.epochs_version)
        self._own_name_synced = True
        if work.generation == self._generation:
            self.synced_offset = max(self.synced_offset, work.end_offset)
