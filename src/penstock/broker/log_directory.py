"""A data directory with many partitions' logs: what it remembers across stops, and what is set aside or swept away.

`recovery-point-offset-checkpoint` says below which offset each log was durable, `log-start-offset-checkpoint` where it
starts, `.kafka_cleanshutdown` that the last stop was clean; the marker is removed before the first append.
`penstock-incarnations` says as whom we registered: if the metadata know another, Apache Kafka has run here since.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from penstock.base.errors import DecodeError
from penstock.base.ids import METADATA_TOPIC, TopicPartition, id_text
from penstock.base.ports import Disk, Random
from penstock.broker.checkpoints import Checkpoint, Checkpoints
from penstock.broker.journal import Journal
from penstock.core.log import names
from penstock.core.log.checkpoints import (
    CLEAN_OFFSETS,
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_partition_metadata,
)
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log

log = Journal(__name__)

INCARNATIONS = "penstock-incarnations"
_DELETE_SUFFIX = "-delete"
_STRAY_SUFFIX = "-stray"


class LogDirectory:
    def __init__(self, disk: Disk, random: Random) -> None:
        self.disk = disk
        self._random = random
        self.stopped_cleanly = disk.exists(CLEAN_SHUTDOWN)
        """the last time"""
        self._checkpoints = Checkpoints(disk)
        self._recovery_points = self._checkpoints.read(RECOVERY_POINTS)
        self._start_offsets = self._checkpoints.read(START_OFFSETS)
        self._clean_offsets = self._checkpoints.read(CLEAN_OFFSETS)
        self._watermarks = self._checkpoints.read(HIGH_WATERMARKS)
        self._doomed: list[str] = []
        """directories of deleted partitions, to be removed from the disk"""
        self._registered: bytes | None = None
        """the incarnation that the metadata know of this node"""
        self._is_ours = True
        """Nobody else has written here since we did."""

    def begin(self, topics: Mapping[str, bytes], registered: bytes | None, wanted: Container[str] = ()) -> None:
        """Before any log is opened: the marker goes, deleted partitions go on the list, strangers are set aside. Those
        that are `wanted` are looked at when they are opened."""
        self._registered = registered
        self._is_ours = registered is None or id_text(registered) in self._read_incarnations()
        if not self._is_ours:
            log.info("another broker has run on this directory: its logs are adopted")
        if self.stopped_cleanly:
            self.disk.remove(CLEAN_SHUTDOWN)
            self.disk.sync_directory("")
        for name in self.disk.list(""):
            if name in wanted:
                continue
            if name.endswith(_DELETE_SUFFIX):
                self._doomed.append(name)
                continue
            topic, dash, index = name.rpartition("-")
            if not dash or not index.isdigit() or topic == METADATA_TOPIC:
                continue
            if topic not in topics or self._owner(name) not in (None, topics[topic]):
                self._set_aside(name)

    def open_again(self, name: TopicPartition, config: LogConfig, now_ms: int, sound_offset: int) -> Log:
        """A log that was damaged: nothing from `sound_offset` on counts as durable any more, and what is not sound is
        cut off as after a crash."""
        self.lower(name, sound_offset)
        self._recovery_points[name] = sound_offset
        opened = Log.open(
            self.disk,
            str(name),
            config,
            now_ms=now_ms,
            recovery_point=sound_offset,
            start_offset=self._start_offsets.get(name, 0),
            sums_hold=self._is_ours,
        )
        opened.clean_offset = self._clean_offsets.get(name)
        return opened

    def open_log(self, name: TopicPartition, topic_id: bytes, config: LogConfig, now_ms: int) -> Log:
        directory = str(name)
        owner = self._owner(directory)
        if owner not in (None, topic_id):
            self._set_aside(directory)
            self._forget(name)
            self._checkpoints.forget([name])
        opened = Log.open(
            self.disk,
            directory,
            config,
            now_ms=now_ms,
            clean=self.stopped_cleanly,
            recovery_point=self._recovery_points.get(name, 0),
            start_offset=self._start_offsets.get(name, 0),
            sums_hold=self._is_ours,
        )
        opened.clean_offset = self._clean_offsets.get(name)
        if owner != topic_id:
            self._write_metadata(directory, topic_id)
        for damage in opened.damage:
            log.error(
                "a log is damaged below its durable point: it is read-only", partition=directory, damage=str(damage)
            )
        return opened

    def high_watermark(self, name: TopicPartition) -> int:
        """As it was known when the checkpoint was written, 0 where nothing is known."""
        return self._watermarks.get(name, 0)

    def lower(self, name: TopicPartition, offset: int) -> None:
        """A log is about to be cut at `offset`, or was found to end there: the checkpoints must not be above that."""
        self._checkpoints.lower(name, offset)

    def sign(self, incarnation: bytes) -> None:
        """Before this broker registers as `incarnation`. The one before stays beside it: a crash may come between."""
        known = [id_text(one) for one in (self._registered, incarnation) if one is not None]
        self.disk.replace(INCARNATIONS, "".join(f"{one}\n" for one in known).encode())

    def remove_log(self, name: TopicPartition) -> None:
        """The partition is deleted: out of the way at once, off the disk with the next sweep."""
        target = names.deleted_directory(str(name), self._random.bytes(16).hex())
        self.disk.rename(str(name), target)
        self._doomed.append(target)
        self._forget(name)

    def _forget(self, name: TopicPartition) -> None:
        for known in (self._start_offsets, self._clean_offsets, self._recovery_points, self._watermarks):
            known.pop(name, None)

    def doomed(self) -> list[str]:
        """What is to be removed from the disk; the caller does it, as a job."""
        doomed, self._doomed = self._doomed, []
        return doomed

    def doom(self, paths: Iterable[str]) -> None:
        """These could not be removed."""
        self._doomed += paths

    def expect(self, new: list[TopicPartition]) -> None:
        """These partitions are about to be made. Where a deleted topic had the same name, the checkpoint files still
        speak of its logs: a crash would take the new ones for damaged. So they forget them first."""
        if any(not self.disk.exists(str(name)) for name in new):
            self._checkpoints.forget(name for name in new if not self.disk.exists(str(name)))

    def checkpoint(self, logs: Iterable[tuple[TopicPartition, Log, int]]) -> Checkpoint:
        """The checkpoint files as they should be now, for a job to write. `logs`: with their watermarks."""
        points, starts, marks, cleaned = {}, {}, {}, {}
        for name, one, high_watermark in logs:
            points[name] = one.recovery_point
            marks[name] = high_watermark
            if one.clean_offset is not None:
                cleaned[name] = one.clean_offset
            if one.start_offset > one.segments[0].base_offset:
                starts[name] = one.start_offset
        return self._checkpoints.of(
            {RECOVERY_POINTS: points, START_OFFSETS: starts, HIGH_WATERMARKS: marks, CLEAN_OFFSETS: cleaned}
        )

    def close(self, logs: list[tuple[TopicPartition, Log, int]], broker_epoch: int) -> None:
        """The logs are closed: remember where, and, where all of them closed cleanly, say so."""
        self.checkpoint(logs).write()
        if all(one.failure is None for _, one, _ in logs):
            self.disk.replace(CLEAN_SHUTDOWN, encode_clean_shutdown(broker_epoch))

    def _read_incarnations(self) -> list[str]:
        try:
            return self.disk.read(INCARNATIONS).decode("ascii", "replace").split()
        except FileNotFoundError:
            return []

    def _write_metadata(self, directory: str, topic_id: bytes) -> None:
        """`partition.metadata`, where it is missing or unreadable. It is not synced: ten thousand syncs would hold up a
        large topic for a minute, and a file that a power loss takes is written again here."""
        file = self.disk.open(f"{directory}/{names.PARTITION_METADATA}", create=True)
        try:
            file.truncate(0)
            file.write(encode_partition_metadata(topic_id))
        finally:
            file.close()

    def _owner(self, directory: str) -> bytes | None:
        """The id of the topic that a log belongs to; None where nothing says so that can be read."""
        try:
            return decode_partition_metadata(self.disk.read(f"{directory}/{names.PARTITION_METADATA}"))
        except (FileNotFoundError, DecodeError):
            return None

    def _set_aside(self, directory: str) -> None:
        target = (
            names.deleted_directory(directory, self._random.bytes(16).hex())[: -len(_DELETE_SUFFIX)] + _STRAY_SUFFIX
        )
        self.disk.rename(directory, target)
        log.warning("a partition on disk is in no topic: set aside, remove it by hand", was=directory, now=target)
