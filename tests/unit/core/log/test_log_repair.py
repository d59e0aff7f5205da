"""A damaged segment is repaired from another copy: to the very same bytes, or not at all, and never half."""

from __future__ import annotations

import copy
import errno
from random import Random

import pytest

from penstock.base.errors import KafkaError
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.log.repair import Filling, Rewriting, Surveyed, sound_at
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import PowerLoss, SimDisk

NOW_MS = 1_763_000_000_000
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)
FIRST = f"t-0/{0:020d}.log"
SIZES = (10, 300, 40, 200, 0, 90, 500, 20, 60, 10)


def filled(disk: SimDisk, epoch: int = 1) -> Log:
    """Some closed segments and an active one, all of it durable."""
    log = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS)
    for size in SIZES:
        batch = build_batch([Record.of(b"k", bytes(range(250)) * (size // 250) + bytes(size % 250), NOW_MS)])
        log.append(batch, 0, len(batch), leader_epoch=epoch, now_ms=NOW_MS)
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    return log


def contents(disk: SimDisk) -> dict[str, bytes]:
    return {path: bytes(one.visible) for path, one in disk.files.items() if path.endswith(".log")}


def scrubbed(log: Log) -> None:
    while (work := log.scrub()) is not None:
        log.on_scrubbed(work.run())


def served(log: Log, offset: int) -> bytes:
    """As another broker is answered, a few batches at a time."""
    try:
        return b"".join(piece.read() for piece in log.read(offset, 300, limit_offset=log.end_offset))
    except KafkaError:
        return b""


def filled_from(donor: Log, log: Log, surveyed: Surveyed) -> list[Filling]:
    fillings = [Filling(gap, sound_at(log.disk, surveyed)) for gap in surveyed.gaps]
    for one in fillings:
        while not one.is_full and one.take(served(donor, one.offset)):
            pass
    return fillings


def repair(log: Log, donor: Log) -> bool:
    """Whether everything that is damaged was found at the donor."""
    while log.damage:
        survey = log.survey(NOW_MS)
        assert survey is not None
        surveyed = survey.run()
        repaired = Rewriting(log.disk, surveyed, filled_from(donor, log, surveyed)).run()
        assert log.on_repaired(repaired)
        if repaired.missing:
            return False
        scrubbed(log)
    return True


def test_any_flipped_bit_is_repaired_to_the_very_same_bytes() -> None:
    other = SimDisk(Random(2))
    donor = filled(other)
    before = contents(other)
    for path, content in before.items():
        starts = [bit for at, _ in iterate(content) for bit in range(at * 8, (at + 61) * 8, 7)]
        for bit in [*starts, *Random(path).sample(range(len(content) * 8), 20)]:
            disk = SimDisk(Random(1))
            log = filled(disk)
            disk.flip_bit(path, bit)
            scrubbed(log)
            assert len(log.damage) == 1, f"bit {bit} of {path} went unnoticed"
            assert repair(log, donor), f"bit {bit} of {path}"
            repaired = contents(disk)
            assert {one: repaired[one] for one in before} == before, f"bit {bit} of {path}"


def test_what_is_damaged_is_not_served_though_this_process_wrote_it() -> None:
    disk = SimDisk(Random(1))
    log = filled(disk)
    offset = log.segments[1].base_offset
    disk.flip_bit(log.segments[1].path(".log"), 8 * 100)
    scrubbed(log)
    assert served(log, offset) == b""
    assert served(log, offset - 1), "what lies before is"
    repair(log, filled(SimDisk(Random(2))))
    assert served(log, offset)


def test_a_stretch_of_many_batches_is_repaired_at_once() -> None:
    disk = SimDisk(Random(1))
    log = filled(disk)
    before = contents(disk)
    for segment in log.segments:
        disk.zero(segment.path(".log"), 0, segment.size)
    scrubbed(log)
    assert repair(log, filled(SimDisk(Random(2))))
    assert {path: contents(disk)[path] for path in before} == before


def test_bytes_that_the_disk_cannot_give_are_damage() -> None:
    disk = SimDisk(Random(1))
    log = filled(disk)
    before = contents(disk)
    disk.fail_next("read", errno.EIO, path_contains=FIRST)
    scrubbed(log)
    assert log.damage
    assert repair(log, filled(SimDisk(Random(2))))
    assert {path: contents(disk)[path] for path in before} == before
    assert not log.damage


def test_another_copy_that_has_other_bytes_is_refused_and_everything_is_kept() -> None:
    disk = SimDisk(Random(1))
    log = filled(disk)
    disk.flip_bit(FIRST, 8 * 200)
    damaged = contents(disk)
    scrubbed(log)
    assert not repair(log, filled(SimDisk(Random(2)), epoch=2)), "the same records, of another leader"
    assert contents(disk)[FIRST] == damaged[FIRST]
    assert log.damage
    assert repair(log, filled(SimDisk(Random(2)))), "and later a good one is found"


def test_a_damaged_donor_gives_nothing() -> None:
    disk, other = SimDisk(Random(1)), SimDisk(Random(2))
    log, donor = filled(disk), filled(other)
    for one in (disk, other):
        one.flip_bit(FIRST, 8 * 200)
    scrubbed(log)
    scrubbed(donor)
    assert not repair(log, donor)


def test_without_entries_a_gap_is_filled_up_to_the_next_sound_batch() -> None:
    """Kafka wrote the segment."""
    disk = SimDisk(Random(1))
    filled(disk).close()
    before = contents(disk)
    for path in [path for path in disk.files if path.endswith(".sums")]:
        disk.remove(path)
    disk.flip_bit(FIRST, 8 * 10)
    log = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS, clean=True, recovery_point=10)
    scrubbed(log)
    assert len(log.damage) == 1
    assert repair(log, filled(SimDisk(Random(2))))
    assert contents(disk)[FIRST] == before[FIRST]


def test_a_segment_that_was_cut_meanwhile_is_not_brought_back() -> None:
    disk = SimDisk(Random(1))
    log = filled(disk)
    disk.flip_bit(FIRST, 8 * 200)
    scrubbed(log)
    survey = log.survey(NOW_MS)
    assert survey is not None
    surveyed = survey.run()
    repaired = Rewriting(disk, surveyed, filled_from(filled(SimDisk(Random(2))), log, surveyed)).run()
    log.truncate(1)
    after_the_cut = contents(disk)[FIRST]
    assert not log.on_repaired(repaired)
    assert contents(disk)[FIRST] == after_the_cut
    assert not [path for path in disk.files if path.endswith(".tmp")]


@pytest.mark.parametrize("seed", range(5))
def test_a_power_loss_at_any_step_leaves_the_old_file_or_the_new_one(seed: int) -> None:
    pristine = SimDisk(Random(seed))
    filled(pristine)
    whole = contents(pristine)[FIRST]
    donor = filled(SimDisk(Random(9)))
    step, finished = 0, False
    while not finished:
        step += 1
        disk = copy.deepcopy(pristine)
        log = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS, recovery_point=10)
        disk.flip_bit(FIRST, 8 * 200)
        damaged = contents(disk)[FIRST]
        scrubbed(log)
        disk.power_loss_after(step)
        try:
            repair(log, donor)
            work = log.unsynced()
            assert work is not None, "the new name is yet to be made durable"
            work.run()
            finished = True
        except PowerLoss:
            pass
        disk.crash()
        left = bytes(disk.files[FIRST].visible)
        assert left in ((whole,) if finished else (damaged, whole)), f"step {step}"
        again = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS, recovery_point=10)
        scrubbed(again)
        assert bool(again.damage) == (left == damaged)
        assert not [path for path in disk.files if path.endswith(".tmp")]
    assert step > 3


def test_a_scrub_that_began_before_a_repair_says_nothing_of_what_is_there_after_it() -> None:
    disk = SimDisk(Random(1))
    log, donor = filled(disk), filled(SimDisk(Random(2)))
    disk.flip_bit(FIRST, 8 * 100)
    scrubbed(log)
    late = log.scrub()
    assert late is not None
    outcome = late.run()
    assert outcome.fault is not None
    assert repair(log, donor)
    log.on_scrubbed(outcome)
    assert log.damage == []
