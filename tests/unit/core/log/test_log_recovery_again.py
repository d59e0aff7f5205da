"""The power goes while a log is being recovered from a loss of power: nothing that was durable goes with it."""

from __future__ import annotations

import copy
from random import Random

import pytest

from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import PowerLoss, SimDisk

NOW_MS = 1_763_000_000_000
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)
OFFSETS = (0, 1, 5, 9, 20, 21, 40, 60, 61, 80)
"""as a follower gets them of a leader that was compacted: some are missing, also where a segment ends"""


def filled(disk: SimDisk) -> None:
    """Closed segments and an active one, all of it durable."""
    log = Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS)
    for offset in OFFSETS:
        batch = build_batch([Record.of(b"k", bytes(250), NOW_MS)])
        batch[:8] = offset.to_bytes(8, "big")
        batch[12:16] = (1).to_bytes(4, "big")
        log.append(batch, 0, len(batch), leader_epoch=1, now_ms=NOW_MS, origin="replication")
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)


def opened(disk: SimDisk) -> Log:
    return Log.open(disk, "t-0", CONFIG, now_ms=NOW_MS, recovery_point=1)


def found(log: Log) -> list[int]:
    raw = b"".join(piece.read() for piece in log.read(0, 1_000_000, limit_offset=log.end_offset))
    seen = [header.base_offset for _, header in iterate(raw, 0)]
    while seen[-1] + 1 < log.end_offset:
        raw = b"".join(piece.read() for piece in log.read(seen[-1] + 1, 1_000_000, limit_offset=log.end_offset))
        seen += [header.base_offset for _, header in iterate(raw, 0)]
    return seen


@pytest.mark.parametrize("seed", range(30))
def test_recovery_may_be_interrupted_anywhere_and_begun_again(seed: int) -> None:
    pristine = SimDisk(Random(seed))
    filled(pristine)
    pristine.crash()
    step, finished = 0, False
    while not finished:
        step += 1
        disk = copy.deepcopy(pristine)
        disk.power_loss_after(step)
        try:
            opened(disk)
            finished = True
        except PowerLoss:
            pass
        disk.crash()
        again = opened(disk)
        assert not again.damage
        assert found(again) == list(OFFSETS), f"step {step}"
    assert step > 3
