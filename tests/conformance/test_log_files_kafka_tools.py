"""Our files as Apache Kafka's own tool sees them: `kafka-dump-log` reads each kind and finds nothing wrong."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from apache import VERSION, find_jars

from penstock.broker.files import RealDisk
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record
from tests.components import require_component

NOW_MS = 1_763_000_000_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed log of several segments, with an idempotent and a transactional producer."""
    root = tmp_path_factory.mktemp("log")
    log = Log.open(
        RealDisk(str(root)), "t-0", LogConfig(segment_bytes=20_000, index_interval_bytes=1000), now_ms=NOW_MS
    )

    def put(batch: bytearray, *, marker: bool = False) -> None:
        log.append(batch, 0, len(batch), leader_epoch=3, now_ms=NOW_MS, origin="coordinator" if marker else "client")

    for number in range(200):
        record = Record.of(b"k%d" % number, b"v" * 150, NOW_MS + number)
        put(build_batch([record], producer_id=100, producer_epoch=0, base_sequence=number))
        inside = build_batch([record], producer_id=200, producer_epoch=1, base_sequence=number, transactional=True)
        put(inside)
        ended = EndMarker(number % 2 == 0, 5)
        put(build_end_marker(ended, producer_id=200, producer_epoch=1, timestamp=NOW_MS + number), marker=True)
    assert log.close()
    return root / "t-0"


def dump(directory: Path, suffix: str, *options: str) -> str:
    jars = find_jars()
    require_component(shutil.which("java") is not None, "Java", "install a JDK 17 or newer")
    require_component(jars is not None, f"Apache Kafka {VERSION}", "run `python tools/fetch_kafka.py`")
    files = ",".join(str(path) for path in sorted(directory.glob(f"*{suffix}")))
    command = ["java", "-cp", f"{jars}/*", "org.apache.kafka.tools.DumpLogSegments", "--files", files, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafka_reads_every_batch(directory: Path) -> None:
    lines = [line for line in dump(directory, ".log", "--deep-iteration").splitlines() if "baseOffset:" in line]
    assert len(lines) == 600
    assert all("isvalid: true" in line and "partitionLeaderEpoch: 3" in line for line in lines)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_kafka_finds_the_indexes_true_to_the_log(directory: Path, suffix: str) -> None:
    told = dump(directory, suffix, "--verify-index-only").lower()
    assert told.count("dumping") >= 3
    assert "mismatch" not in told and "out of order" not in told and "corrupt" not in told


def test_kafka_reads_the_aborted_transactions(directory: Path) -> None:
    lines = [line for line in dump(directory, ".txnindex").splitlines() if "producerId: 200" in line]
    assert len(lines) == 100
    assert lines[0] == "version: 0 producerId: 200 firstOffset: 4 lastOffset: 5 lastStableOffset: 6"


def test_kafka_reads_the_producers_and_minds_not_what_we_added(directory: Path) -> None:
    last = dump(directory, "00600.snapshot")
    assert "producerId: 100 producerEpoch: 0 coordinatorEpoch: -1" in last
    assert "lastSequence: 199 lastOffset: 597" in last
    assert "producerId: 200 producerEpoch: 1 coordinatorEpoch: 5 currentTxnFirstOffset: OptionalLong.empty" in last
