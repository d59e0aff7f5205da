"""A load by Spark in a process of its own, which kills itself at a named step of a batch's way into the table."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from penstock.pipeline import session
from penstock.pipeline.lake import load
from penstock.pipeline.lake.loading import Batches
from tests.unit.pipeline.lake_killed import arm, doors


def watch(to: str) -> None:
    """SIGKILL while the tasks of a batch write: as soon as one of their files is there."""
    there = set(Path(to).rglob("part-*"))
    while set(Path(to).rglob("part-*")) <= there:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)


def main(kind: str, bootstrap: str, topic: str, to: str, step: str, when: str, calls: str) -> None:
    if step == "writing":
        threading.Thread(target=watch, args=(to,), daemon=True).start()
    elif step != "none":
        arm(*{**doors(kind), "tasks": (Batches, "_write")}[step], when, int(calls))
    started = load(
        topic,
        to,
        bootstrap=bootstrap,
        kind=kind,
        once=True,
        options={"valueFormat": "json", "valueSchema": "number INT", "maxOffsetsPerTrigger": "1000"},
        spark=session("killed", master="local[1]"),
    )
    started.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
