"""Microseconds per append and per read of one log, with everything on, apart from the system calls themselves.

    python benchmarks/log_append.py [--batches N] [--bytes B]

Prints a line per case: the whole, the share of the write call, and what is left for us.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable

from penstock.broker.files import RealDisk
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.builder import build_batch
from penstock.records.record import Record

NOW_MS = 1_763_000_000_000


def best_of(rounds: int, work: Callable[[], float]) -> float:
    return min(work() for _ in range(rounds))


def batch_of(size: int, sequence: int = -1) -> bytearray:
    """One record of `size` bytes; from an idempotent producer where `sequence` says so."""
    record = Record.of(None, b"x" * size, NOW_MS)
    if sequence < 0:
        return build_batch([record])
    return build_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)


def time_append(root: str, batches: list[bytearray]) -> float:
    disk = RealDisk(tempfile.mkdtemp(dir=root))
    log = Log.open(disk, "bench-0", LogConfig(), now_ms=NOW_MS)
    for batch in batches:
        batch[0:8] = bytes(8)
    started = time.perf_counter()
    for batch in batches:
        log.append(batch, 0, len(batch), leader_epoch=0, now_ms=NOW_MS)
    elapsed = time.perf_counter() - started
    shutil.rmtree(disk.root)
    return elapsed / len(batches) * 1e6


def time_write(root: str, count: int, batch: bytearray) -> float:
    path = os.path.join(root, "plain")
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    view = memoryview(batch)
    started = time.perf_counter()
    for _ in range(count):
        os.write(fd, view)
    elapsed = time.perf_counter() - started
    os.close(fd)
    os.unlink(path)
    return elapsed / count * 1e6


def time_tail_read(root: str, count: int, batch: bytearray) -> float:
    disk = RealDisk(tempfile.mkdtemp(dir=root))
    log = Log.open(disk, "bench-0", LogConfig(), now_ms=NOW_MS)
    spent = 0.0
    for _ in range(count):
        batch[0:8] = bytes(8)
        offset = log.append(batch, 0, len(batch), leader_epoch=0, now_ms=NOW_MS).first_offset
        started = time.perf_counter()
        log.read(offset, 1_048_576, limit_offset=log.end_offset)
        spent += time.perf_counter() - started
    shutil.rmtree(disk.root)
    return spent / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=100)
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="penstock-log-")
    try:
        batch = batch_of(options.bytes)
        write_us = best_of(5, lambda: time_write(root, options.batches, batch))
        plain = [batch_of(options.bytes) for _ in range(options.batches)]
        append_us = best_of(5, lambda: time_append(root, plain))
        numbered = [batch_of(options.bytes, sequence) for sequence in range(options.batches)]
        idempotent_us = best_of(5, lambda: time_append(root, numbered))
        read_us = best_of(3, lambda: time_tail_read(root, options.batches, batch))
    finally:
        shutil.rmtree(root)
    figures = {
        "write_call_us": write_us,
        "append_us": append_us,
        "append_without_write_us": append_us - write_us,
        "idempotent_append_us": idempotent_us,
        "tail_read_us": read_us,
    }
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
