"""The helper process of compaction: what it says, and that it does not outlive its broker."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.broker.files import RealDisk
from penstock.broker.helper_process import LogDamaged, compact_in_helper
from penstock.core.log.compaction_job import CleaningJob
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.builder import build_batch
from penstock.records.record import Record

NOW_MS = 1_763_000_000_000

BROKER = """
import asyncio, sys
from penstock.broker import helper_process

async def main():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STAND_IN, stdin=-1, stdout=-1, stderr=-1
    )
    talking = asyncio.ensure_future(helper_process._talk(process, b"job"))
    print(process.pid, flush=True)
    await talking

STAND_IN = '''
import sys, time
from threading import Thread
from penstock.broker import cleaning_worker
assert cleaning_worker._read(int.from_bytes(cleaning_worker._read(8), "big")) == b"job"
Thread(target=cleaning_worker._end_with_the_broker, daemon=True).start()
time.sleep(600)
'''
asyncio.run(main())
"""
"""A broker whose helper has much to do."""


def dirty(path: Path) -> tuple[Log, CleaningJob]:
    config = LogConfig(segment_bytes=500, cleanup_policy=("compact",))
    log = Log.open(RealDisk(str(path)), "t-0", config, now_ms=NOW_MS)
    for number in range(12):
        batch = build_batch([Record.of(b"%d" % (number % 3), b"v" * 100, NOW_MS)])
        log.append(batch, 0, len(batch), leader_epoch=0, now_ms=NOW_MS)
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)
    job = log.cleaning(NOW_MS, log.end_offset, 1 << 20)
    assert job is not None
    return log, job


def test_a_job_is_done(tmp_path: Path):
    log, job = dirty(tmp_path)
    cleaned = asyncio.run(compact_in_helper(str(tmp_path), job))
    assert cleaned.bytes_after < cleaned.bytes_before
    assert log.on_cleaned(cleaned, NOW_MS)


def test_a_log_that_is_damaged_is_told_from_a_helper_that_failed(tmp_path: Path):
    log, job = dirty(tmp_path)
    path = tmp_path / log.segments[0].path(".log")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(LogDamaged, match="byte"):
        asyncio.run(compact_in_helper(str(tmp_path), job))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone can wait for another's child")
def test_it_ends_when_its_broker_is_killed():
    broker = subprocess.Popen([sys.executable, "-c", BROKER], stdout=subprocess.PIPE)
    assert broker.stdout is not None
    helper = os.pidfd_open(int(broker.stdout.readline()))
    try:
        assert not select.select([helper], [], [], 0.5)[0], "it is at work"
        broker.kill()
        broker.wait()
        assert select.select([helper], [], [], 30)[0]
    finally:
        broker.kill()
        broker.stdout.close()
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(helper, signal.SIGKILL)
        os.close(helper)
