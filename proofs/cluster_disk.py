"""A cluster of three under load, one of whose disks fills up: the others go on, nothing acked is lost, and with room
again the node comes back and catches up.

The disk is a small file system in memory, filled by a file beside the data. It needs root, to mount it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from penstock.cli.running import holder
from proofs.cluster_chaos import NODES, TOPIC, judged, make_topic, told
from proofs.cluster_load import Load
from proofs.cluster_up import ClusterUp
from proofs.cluster_view import View, wait_until

NODE = 3
DISK_MB = 256
LIMIT_S = 40.0
"""Until everything flows again: a copy that cannot keep up is left behind after replica.lag.time.max.ms, 30 s"""


def available() -> bool:
    return os.geteuid() == 0


def run(fillings: int = 3, partitions: int = 6) -> dict[str, object]:
    assert available(), "a file system of one's own needs root"
    flowing_s = []
    with tempfile.TemporaryDirectory(prefix="penstock-disk-") as scratch:
        directory = Path(scratch) / "data"
        with mounted(directory / str(NODE) / "data"), ClusterUp(directory) as cluster:
            view = View(cluster.bootstrap, cluster.controllers())
            make_topic(view, partitions)
            with Load(cluster.bootstrap, TOPIC, partitions) as load:
                for _ in range(fillings):
                    flowing_s.append(_fill_up(cluster, view, load))
    verdict = judged(load)
    assert max(flowing_s) < LIMIT_S, f"clients waited {max(flowing_s)} s"
    return {
        "fillings": fillings,
        "flowing_again_seconds_worst": max(flowing_s),
        "failed_delivery_reports": len(load.book.failed_reports),
        **told(verdict),
    }


def _fill_up(cluster: ClusterUp, view: View, load: Load) -> float:
    """The seconds from the full disk until the node is left out and everything flows without it."""
    ballast = cluster.directory / str(NODE) / "data" / "ballast"
    pid = str(cluster.directory / str(NODE) / "pid")
    began = time.monotonic()
    _write_until_full(ballast)
    try:
        wait_until(lambda: holder(pid) is None or not view.in_sync(TOPIC, [NODE]), "nobody notices the full disk", 120)
        load.flowing(time.monotonic(), 120)
        waited_s = round(time.monotonic() - began, 2)
    finally:
        ballast.unlink()
    if holder(pid) is not None:
        cluster.stop_node(NODE)
    cluster.bring_back(NODE)
    view.wait_in_sync(TOPIC, NODES, 120)
    return waited_s


def _write_until_full(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


@contextlib.contextmanager
def mounted(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(directory)], check=True)
    try:
        yield
    finally:
        wait_until(lambda: subprocess.run(["umount", str(directory)], check=False).returncode == 0, "it is in use", 30)
