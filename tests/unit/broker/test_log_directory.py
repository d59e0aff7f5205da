"""A data directory knows whether another broker has run on it, and which topic a log belongs to."""

from __future__ import annotations

from random import Random

import pytest

from penstock.base.ids import TopicPartition
from penstock.broker.log_directory import LogDirectory
from penstock.core.log.checkpoints import decode_partition_metadata
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.log.sums import Sums
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000
SUMS = "t-0/00000000000000000000.sums"
FIRST, SECOND, STRANGER = b"1" * 16, b"2" * 16, b"3" * 16


class FixedRandom:
    def bytes(self, count: int) -> bytes:
        return bytes(count)

    def integer(self, below: int) -> int:
        return 0


def start(
    disk: SimDisk, registered: bytes | None, incarnation: bytes, topic_id: bytes = b"t" * 16, wanted: str = "t-0"
) -> Log:
    """What a broker does: open, sign, write, close."""
    name = TopicPartition("t", 0)
    directory = LogDirectory(disk, FixedRandom())
    directory.begin({"t": topic_id}, registered, [wanted])
    log = directory.open_log(name, topic_id, LogConfig(), NOW_MS)
    directory.sign(incarnation)
    batch = build_batch([Record.of(b"k", b"v", NOW_MS)])
    log.append(batch, 0, len(batch), leader_epoch=1, now_ms=NOW_MS)
    assert log.close()
    directory.close([(name, log, 0)], 1)
    return log


def entries(disk: SimDisk) -> int:
    return Sums.load(disk, SUMS).batches()


def test_our_own_checksums_are_kept_across_starts() -> None:
    disk = SimDisk(Random(1))
    start(disk, None, FIRST)
    start(disk, FIRST, SECOND)
    assert entries(disk) == 2


def test_a_crash_before_the_registration_does_not_make_us_a_stranger() -> None:
    disk = SimDisk(Random(1))
    start(disk, None, FIRST)
    start(disk, FIRST, SECOND)
    start(disk, FIRST, STRANGER)
    assert entries(disk) == 3


def test_after_another_broker_our_checksums_count_no_more() -> None:
    disk = SimDisk(Random(1))
    start(disk, None, FIRST)
    start(disk, STRANGER, SECOND)
    assert entries(disk) == 1, "of the batch that we appended ourselves"


@pytest.mark.parametrize("wanted", ["t-0", "another-0"])
def test_a_log_of_a_topic_that_had_the_same_name_is_set_aside(wanted: str) -> None:
    disk = SimDisk(Random(1))
    start(disk, None, FIRST, b"o" * 16)
    start(disk, FIRST, SECOND, b"o" * 16)
    log = start(disk, SECOND, SECOND, b"n" * 16, wanted)
    assert log.end_offset == 1, "its own record alone"
    assert not log.damage, "what was known of the other log does not hold for this one"
    aside = [name for name in disk.list("") if name.endswith("-stray")]
    assert len(aside) == 1
    assert decode_partition_metadata(disk.read(f"{aside[0]}/partition.metadata")) == b"o" * 16
    assert decode_partition_metadata(disk.read("t-0/partition.metadata")) == b"n" * 16
