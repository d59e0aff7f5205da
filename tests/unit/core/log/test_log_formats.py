"""The files beside a log: written as Kafka writes them, read back, and not believed where they cannot be true."""

from __future__ import annotations

from random import Random

import pytest

from penstock.base.errors import DecodeError
from penstock.base.ids import TopicPartition
from penstock.core.log import checkpoints, names, producer_snapshot, txn_index
from penstock.core.log.config import LogConfig
from penstock.core.log.epochs import LeaderEpochs
from penstock.core.log.leftovers import tidy
from penstock.core.log.log import Log
from penstock.core.log.offset_index import OffsetIndex
from penstock.core.log.producers import Producer, ProducerBatch
from penstock.core.log.ranges import Ranges
from penstock.core.log.sums import Sums
from penstock.core.log.time_index import TimeIndex
from penstock.core.log.txn_index import AbortedTransaction
from penstock.records.batch import CREATE_TIME, LOG_APPEND_TIME, Codec
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NOW_MS = 1_763_000_000_000


def test_an_offset_index_is_pairs_of_relative_offset_and_position() -> None:
    index = OffsetIndex(100)
    index.append(105, 4200)
    index.append(110, 8400)
    assert bytes(index.data) == bytes.fromhex("00000005 00001068 0000000a 000020d0")
    assert [index.lookup(offset)[1] for offset in (100, 104, 105, 109, 110, 999)] == [0, 0, 4200, 4200, 8400, 8400]
    assert [index.floor_position(at) for at in (0, 4199, 4200, 9000)] == [0, 0, 4200, 8400]
    index.truncate(110)
    assert (len(index), index.last_offset, index.last_position) == (1, 105, 4200)


def test_an_index_that_kafka_preallocated_ends_where_its_entries_end() -> None:
    raw = OffsetIndex(0)
    raw.append(255, 256)
    found = OffsetIndex.load(0, bytes(raw.data) + bytes(1024), 1000)
    assert found is not None and len(found) == 1
    assert OffsetIndex.load(0, bytes(raw.data), 100) is None, "it points beyond the log"


def test_a_time_index_takes_only_later_times() -> None:
    index = TimeIndex(50)
    index.append(1000, 55)
    index.append(900, 60)
    index.append(1100, 65)
    assert bytes(index.data) == bytes.fromhex("00000000000003e8 00000005 000000000000044c 0000000f")
    assert [index.lookup(time) for time in (999, 1000, 1099, 1100)] == [50, 55, 55, 65]
    index.truncate(65)
    assert index.last_timestamp == 1000
    found = TimeIndex.load(50, bytes(index.data) + bytes(120))
    assert found is not None and len(found) == 1


def test_a_transaction_index_entry_has_34_bytes() -> None:
    entry = AbortedTransaction(7, 10, 20, 21)
    raw = txn_index.encode([entry])
    assert raw == bytes.fromhex("0000 0000000000000007 000000000000000a 0000000000000014 0000000000000015")
    assert txn_index.decode(raw, 0) == [entry]
    assert txn_index.decode(raw, 21) is None, "it belongs to an earlier segment"
    assert txn_index.decode(raw[:-1], 0) is None


def test_a_producer_snapshot_is_laid_out_as_kafkas() -> None:
    producer = Producer(5)
    producer.epoch, producer.coordinator_epoch, producer.last_timestamp = 1, 2, 1000
    producer.batches.append(ProducerBatch(8, 9, 30, 1, 1000))
    raw = producer_snapshot.encode([producer])
    assert raw[:2] == b"\x00\x01"
    assert raw[6:] == bytes.fromhex(
        "00000001 0000000000000005 0001 00000009 000000000000001e 00000001 00000000000003e8 00000002 ffffffffffffffff"
    )
    assert producer_snapshot.decode(raw) == [producer]
    with pytest.raises(DecodeError):
        producer_snapshot.decode(raw[:-1] + b"\0")


def test_leader_epochs_are_text() -> None:
    epochs = LeaderEpochs([(0, 0), (3, 120)])
    assert epochs.encode() == b"0\n2\n0 0\n3 120\n"
    assert LeaderEpochs.decode(epochs.encode()).entries() == [(0, 0), (3, 120)]
    for bad in (b"", b"1\n0\n", b"0\n2\n0 0\n", b"0\n1\nx y\n", b"0\n2\n3 5\n1 9\n"):
        with pytest.raises(DecodeError):
            LeaderEpochs.decode(bad)


def test_offset_checkpoints_are_text() -> None:
    offsets = {TopicPartition("b", 1): 5, TopicPartition("a", 0): 7}
    raw = checkpoints.encode_offsets(offsets)
    assert raw == b"0\n2\na 0 7\nb 1 5\n"
    assert checkpoints.decode_offsets(raw) == offsets
    with pytest.raises(DecodeError):
        checkpoints.decode_offsets(b"0\n2\na 0 7\n")


def test_the_small_files_of_a_directory() -> None:
    assert checkpoints.encode_clean_shutdown(11) == b'{"version":0,"brokerEpoch":11}'
    assert checkpoints.decode_clean_shutdown(b'{"version":0,"brokerEpoch":11}') == 11
    assert checkpoints.decode_clean_shutdown(b"") == -1
    raw = checkpoints.encode_partition_metadata(bytes(range(16)))
    assert raw == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert checkpoints.decode_partition_metadata(raw + b"\n") == bytes(range(16))


def test_a_deleted_directory_keeps_within_what_a_file_system_takes() -> None:
    name = names.deleted_directory("x" * 249 + "-10", "0" * 32)
    assert len(name) == 255
    assert name.endswith("." + "0" * 32 + "-delete")


def test_checksums_end_where_their_chain_breaks() -> None:
    disk = SimDisk(Random(1))
    sums = Sums(disk, "sums")
    for number in range(5):
        sums.append(number * 100, number, 0, 1, 100, 77)
    sums.write()
    assert [entry.base_offset for entry in Sums.load(disk, "sums").entries(0)] == [0, 1, 2, 3, 4]
    assert [entry.base_offset for entry in Sums.load(disk, "sums").entries(250)] == [3, 4]
    disk.flip_bit("sums", 8 * (32 * 2 + 5))
    assert [entry.base_offset for entry in Sums.load(disk, "sums").entries(0)] == [0, 1]


def test_checked_stretches_grow_together() -> None:
    ranges = Ranges()
    ranges.add(10, 20)
    ranges.add(30, 40)
    assert (ranges.end_of(15), ranges.end_of(25), ranges.end_of(20)) == (20, 25, 20)
    ranges.add(20, 30)
    assert ranges.end_of(10) == 40
    ranges.cut(35)
    assert ranges.end_of(10) == 35


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (["5.log.deleted", "5.index.deleted"], ["0.log", "10.log"]),
        (["0.log.cleaned", "0.index.cleaned"], ["0.log", "10.log"]),
        (["0.log.swap", "0.index.swap"], ["0.index", "0.log"]),
        (["0.log.swap", "0.index.cleaned"], ["0.log", "10.log"]),
        (["10.index.swap"], ["0.log", "10.index", "10.log"]),
        (["7.index", "7.timeindex"], ["0.log", "10.log"]),
    ],
)
def test_what_an_interrupted_swap_left_is_finished_or_undone(left: list[str], expected: list[str]) -> None:
    disk = SimDisk(Random(1))
    disk.make_directory("t-0")
    swapped = build_batch([Record.of(b"k", b"v", NOW_MS)] * 15)  # offsets 0 to 14: it replaces both segments
    for name in ["0.log", "10.log", *left]:
        base, _, rest = name.partition(".")
        disk.open(f"t-0/{int(base):020d}.{rest}", create=True).write(swapped if rest == "log.swap" else b"")
    tidy(disk, "t-0", 4096)
    found = [f"{int(name[:20])}{name[20:]}" for name in disk.list("t-0")]
    assert sorted(found) == sorted(expected)


def test_configuration_is_taken_by_kafkas_names() -> None:
    config = LogConfig.from_values(
        {
            "segment.bytes": "1048576",
            "cleanup.policy": "delete,compact",
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "min.cleanable.dirty.ratio": "0.25",
            "unclean.leader.election.enable": "true",
        }
    )
    assert config.segment_bytes == 1_048_576
    assert config.is_compacted and config.is_deleted
    assert config.timestamp_type == LOG_APPEND_TIME
    assert (config.compression, config.compression_level) == (Codec.ZSTD, 3)
    default = LogConfig.from_values({})
    assert (default.timestamp_type, default.compression, default.flush_messages) == (CREATE_TIME, None, 2**63 - 1)


def test_an_idle_log_is_closed_without_a_write() -> None:
    disk = SimDisk(Random(1))
    log = Log.open(disk, "t-0", LogConfig(), now_ms=NOW_MS)
    batch = build_batch([Record.of(b"k", b"v", NOW_MS)])
    log.append(batch, 0, len(batch), leader_epoch=0, now_ms=NOW_MS)
    assert log.close()
    again = Log.open(disk, "t-0", LogConfig(), now_ms=NOW_MS, clean=True, recovery_point=1)
    changes = disk.changes
    assert again.close()
    assert disk.changes == changes
    assert Log.open(disk, "t-0", LogConfig(), now_ms=NOW_MS, clean=True, recovery_point=1).end_offset == 1
