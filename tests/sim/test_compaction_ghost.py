"""The invariants of compaction: what they judge, and what they must not."""

from __future__ import annotations

from random import Random

from penstock.base.ids import TopicPartition
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.replication.leading import Cluster
from penstock.core.replication.partition import Partition
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk
from penstock.sim.invariants.batches import read_batches
from penstock.sim.invariants.compaction_ghost import CompactionGhost
from penstock.sim.probes import PartitionProbe, probe_of

CONFIG = LogConfig(cleanup_policy=("compact",))


def test_a_copy_may_come_back_with_records_that_were_never_committed() -> None:
    """A leader wrote at offset 2 and lost its leadership and its power. Another wrote something else there, which was
    committed. The first comes back, and has not heard of that yet."""
    told, ghost = _ghost_of(["a=1", "b=1", "a=2"])
    before = _copy(["a=1", "b=1"], high_watermark=2)
    ghost.moved(1, "broker-1 c-0", before)
    ghost.opened(1, "broker-1 c-0", _copy(["a=1", "b=1", "b=9"]))
    assert told == []


def test_a_copy_that_comes_back_with_another_record_than_it_knew_to_be_committed_is_told() -> None:
    told, ghost = _ghost_of(["a=1", "b=1", "a=2"])
    ghost.moved(1, "broker-1 c-0", _copy(["a=1", "b=1"], high_watermark=2))
    ghost.opened(1, "broker-1 c-0", _copy(["a=1", "b=9"]))
    assert [text.partition(",")[0] for text in told] == ["C1 broker-1 c-0: offset 1 held Kept(key=b'b'"]


def test_the_last_record_of_a_key_must_be_there() -> None:
    told, ghost = _ghost_of(["a=1", "b=1", "a=2"])
    whole = _copy(["a=1", "b=1", "a=2"], high_watermark=3)
    ghost.moved(1, "broker-1 c-0", whole)
    ghost.opened(1, "broker-1 c-0", _copy(["", "b=1", "a=2"]))
    assert told == [], "a later record has the key"
    ghost.opened(1, "broker-1 c-0", _copy(["a=1", "", "a=2"]))
    assert [text[:2] for text in told] == ["C1"]


def _ghost_of(committed: list[str]) -> tuple[list[str], CompactionGhost]:
    told: list[str] = []
    ghost = CompactionGhost(lambda invariant, text: told.append(f"{invariant} {text}"))
    log = _log(committed)
    for batch in read_batches(log, 0, log.end_offset):
        ghost.committed("c-0", batch, log)
    return told, ghost


def _copy(records: list[str], high_watermark: int = 0) -> PartitionProbe:
    place = TopicPartition("c", 0)
    return probe_of(Partition(place, bytes(16), _log(records), Cluster(1), high_watermark=high_watermark))


def _log(records: list[str]) -> Log:
    """One record a batch; an empty text leaves an offset out, as compaction does."""
    log = Log.open(SimDisk(Random(1)), "c-0", CONFIG, now_ms=1_000)
    for offset, text in enumerate(records):
        if text:
            key, _, value = text.partition("=")
            batch = build_batch([Record.of(key.encode(), value.encode(), 1_000)], base_offset=offset, leader_epoch=0)
            log.append(batch, 0, len(batch), leader_epoch=0, now_ms=1_000, origin="replication")
    return log
