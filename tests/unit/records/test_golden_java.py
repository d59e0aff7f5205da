"""Batches written by Apache Kafka 4.3's own classes, read here, and written here again to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.records.batch import Codec, check_crc, read_header
from penstock.records.builder import build_batch, build_empty_batch
from penstock.records.control import (
    ControlType,
    EndMarker,
    build_control_batch,
    build_end_marker,
    control_type,
    read_end_marker,
)
from penstock.records.record import Record, read_records

GOLDEN = {
    name: bytes.fromhex(data)
    for name, data in (
        line.split() for line in Path(__file__).with_name("golden_java_4.3.txt").read_text().splitlines()
    )
}

RECORDS = [
    Record(5, 1000, b"k1", b"value one value one value one", (("trace", b"abc"), ("nüll", None))),
    Record(6, 1005, b"k2", None),
    Record(7, 999, None, b"value three value three"),
]


@pytest.mark.parametrize("codec", list(Codec))
def test_each_codec_of_the_java_client_is_read(codec: Codec) -> None:
    golden = GOLDEN[codec.name.lower()]
    assert check_crc(golden, 0, len(golden))
    assert read_header(golden).codec == codec
    assert read_records(golden) == RECORDS


def test_an_uncompressed_batch_is_written_to_the_byte() -> None:
    ours = build_batch(
        RECORDS,
        base_offset=5,
        producer_id=77,
        producer_epoch=3,
        base_sequence=9,
        transactional=True,
        leader_epoch=4,
    )
    assert ours == GOLDEN["none"]


def test_log_append_time_counts_for_every_record() -> None:
    golden = GOLDEN["append_time"]
    assert {record.timestamp for record in read_records(golden)} == {read_header(golden).max_timestamp}


@pytest.mark.parametrize(("name", "committed"), [("commit", True), ("abort", False)])
def test_end_markers_are_read_and_written_to_the_byte(name: str, committed: bool) -> None:
    marker = EndMarker(committed, coordinator_epoch=21)
    assert read_end_marker(GOLDEN[name]) == marker
    ours = build_end_marker(marker, producer_id=77, producer_epoch=3, timestamp=5000, base_offset=12, leader_epoch=4)
    assert ours == GOLDEN[name]


def test_a_quorums_control_batch_is_written_to_the_byte() -> None:
    (record,) = read_records(GOLDEN["leader_change"])
    assert control_type(record.key) is ControlType.LEADER_CHANGE
    assert record.value is not None
    ours = build_control_batch([(ControlType.LEADER_CHANGE, record.value)], timestamp=5000, leader_epoch=4)
    assert ours == GOLDEN["leader_change"]
    assert read_end_marker(ours) is None


def test_what_compaction_leaves_of_a_batch_is_written_to_the_byte() -> None:
    assert build_empty_batch(read_header(GOLDEN["none"])) == GOLDEN["empty"]
    assert read_records(GOLDEN["empty"]) == []
    assert read_end_marker(GOLDEN["empty"]) is None
