"""The records of `__consumer_offsets`, byte for byte as Apache Kafka 4.3.0's own serde writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import DecodeError
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups import records
from penstock.core.groups.partitions import java_string_hash, partition_for, utf16_length
from penstock.protocol.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue

TIME_MS = 1_700_000_000_000


def as_hex(record: CoordinatorRecord) -> tuple[str, str | None]:
    return record.key.hex(), None if record.value is None else record.value.hex()


OFFSET_KEY = "000100016700017400000003"
OFFSETS = {
    "plain": (
        OffsetCommitValue(offset=42, leader_epoch=7, metadata="meta", commit_timestamp=TIME_MS),
        "0004000000000000002a00000007056d6574610000018bcfe5680000",
    ),
    "with a topic id": (
        OffsetCommitValue(offset=42, commit_timestamp=TIME_MS, topic_id=bytes(7) + b"\1" + bytes(7) + b"\2"),
        "0004000000000000002affffffff010000018bcfe5680001001000000000000000010000000000000002",
    ),
    "with an expiry of its own": (
        OffsetCommitValue(
            offset=42, leader_epoch=-1, metadata="meta", commit_timestamp=TIME_MS, expire_timestamp=TIME_MS + 5_000
        ),
        "0001000000000000002a00046d6574610000018bcfe568000000018bcfe57b88",
    ),
}


@pytest.mark.parametrize("kind", OFFSETS)
def test_offsets_are_written_as_kafka_writes_them(kind: str) -> None:
    value, expected = OFFSETS[kind]
    record = records.offset_record("g", "t", 3, value)
    assert as_hex(record) == (OFFSET_KEY, expected)
    assert record.value is not None and records.read_offset_value(record.value) == value
    assert records.read_offset_key(record.key) == ("g", "t", 3)


def test_groups_are_written_as_kafka_writes_them() -> None:
    member = MemberMetadata(
        member_id="m1",
        group_instance_id="i1",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=b"\1\2",
        assignment=b"\3",
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="m1",
        current_state_timestamp=TIME_MS,
        members=[member],
    )
    expected = (
        "00030008636f6e73756d657200000005000572616e676500026d310000018bcfe568000000000100026d3100026931000163000a"
        "2f3132372e302e302e310000ea60000027100000000201020000000103"
    )
    record = records.group_record("g", value)
    assert as_hex(record) == ("0002000167", expected)
    assert record.value is not None and records.read_group_value(record.value) == value


def test_a_new_group_is_written_as_kafka_writes_it() -> None:
    empty = GroupMetadataValue(protocol_type="", protocol=None, leader=None, current_state_timestamp=TIME_MS)
    assert as_hex(records.group_record("g", empty)) == (
        "0002000167",
        "0003000000000000ffffffff0000018bcfe5680000000000",
    )


def test_tombstones_are_keys_alone() -> None:
    assert as_hex(records.offset_tombstone("g", "t", 3)) == (OFFSET_KEY, None)
    assert as_hex(records.group_tombstone("g")) == ("0002000167", None)


@pytest.mark.parametrize("key", [b"", b"\0"])
def test_a_key_without_a_type_is_no_record(key: bytes) -> None:
    with pytest.raises(DecodeError):
        records.key_type(key)


@pytest.mark.parametrize(
    ("group_id", "java_hash", "partition"),
    [
        ("g", 103, 3),
        ("my-group", -1906497762, 12),
        ("Aa", 2112, 12),
        ("polygenelubricants", -2147483648, 0),
        ("grüße", 98768023, 23),
        ("日本語", 25921943, 43),
        ("💧-group", 1850435324, 24),
        ("connect-sink", 1867811222, 22),
    ],
)
def test_a_group_is_where_java_says(group_id: str, java_hash: int, partition: int) -> None:
    assert java_string_hash(group_id) == java_hash & 0xFFFFFFFF
    assert partition_for(group_id, 50) == partition


def test_an_id_that_was_no_utf8_has_its_place_too() -> None:
    assert 0 <= partition_for(b"\xff\xfe".decode("utf-8", "surrogateescape"), 50) < 50


def test_length_is_counted_as_java_counts() -> None:
    assert [utf16_length(text) for text in ("abc", "grüße", "💧")] == [3, 5, 2]


@given(
    st.integers(-1, 2**63 - 1), st.integers(-1, 2**31 - 1), st.text(max_size=200), st.integers(0, 2**62), st.booleans()
)
def test_reader_and_writer_by_hand_agree_with_the_specification(
    offset: int, epoch: int, metadata: str, time_ms: int, has_id: bool
) -> None:
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=time_ms,
        topic_id=bytes([has_id] * 16),
    )
    record = records.offset_record(metadata, "t" + metadata, 7, value)
    assert record.value is not None
    assert record.value == b"\0\4" + value.encode(4)
    assert records.read_offset_value(record.value) == value
    assert records.read_offset_key(record.key) == (metadata, "t" + metadata, 7)


@pytest.mark.parametrize("cut", range(2, 12))
def test_an_offset_key_that_is_cut_short_is_no_key(cut: int) -> None:
    with pytest.raises(DecodeError):
        records.read_offset_key(bytes.fromhex(OFFSET_KEY)[:cut])
