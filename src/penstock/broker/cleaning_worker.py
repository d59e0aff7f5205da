"""The helper process of `cleaning`: one job from standard input, its outcome to standard output."""

from __future__ import annotations

import os
import pickle
import sys

from penstock.broker.files import RealDisk
from penstock.core.log.compaction_job import CleaningJob, run

_NICENESS = 10


def main() -> None:
    os.nice(_NICENESS)
    job = pickle.load(sys.stdin.buffer)
    assert isinstance(job, CleaningJob)
    sys.stdout.buffer.write(pickle.dumps(run(RealDisk(sys.argv[1]), job)))


if __name__ == "__main__":
    main()
