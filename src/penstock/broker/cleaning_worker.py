"""The helper process of `cleaning`: one job from standard input, its outcome to standard output.

The broker keeps the other end of standard input open. When that ends, so has the broker, and so does the helper: the
next one on the same directory must not find it at work on files of the same names.
"""

from __future__ import annotations

import os
import pickle
import sys
from threading import Thread

from penstock.broker.files import RealDisk
from penstock.core.log.compaction_job import CleaningJob, run
from penstock.core.log.walk import BadBatch

DAMAGED = 3
"""the exit code where the log has a bad batch"""
SIZE_BYTES = 8
"""of the job's size, in front of it"""
_NICENESS = 10
_ABANDONED = 4
_STDIN = 0


def main() -> None:
    os.nice(_NICENESS)
    job = pickle.loads(_read(int.from_bytes(_read(SIZE_BYTES), "big")))
    assert isinstance(job, CleaningJob)
    Thread(target=_end_with_the_broker, daemon=True).start()
    try:
        cleaned = run(RealDisk(sys.argv[1]), job)
    except BadBatch as fault:
        sys.stderr.write(f"{fault}\n")
        sys.exit(DAMAGED)
    sys.stdout.buffer.write(pickle.dumps(cleaned))


def _read(size: int) -> bytes:
    """Not by `sys.stdin`: it is locked while somebody reads from it, and the interpreter could not end then."""
    data = b""
    while len(data) < size:
        piece = os.read(_STDIN, size - len(data))
        if not piece:
            sys.exit(_ABANDONED)
        data += piece
    return data


def _end_with_the_broker() -> None:
    try:
        os.read(_STDIN, 1)
    finally:
        os._exit(_ABANDONED)


if __name__ == "__main__":
    main()
