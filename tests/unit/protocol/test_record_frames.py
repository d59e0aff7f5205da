from __future__ import annotations

import pytest

from penstock.base.errors import DecodeError, KafkaError
from penstock.protocol.generated.offset_commit_key import OffsetCommitKey
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.metadata_frames import (
    decode_coordinator,
    decode_metadata,
    encode_coordinator_key,
    encode_coordinator_value,
    encode_metadata,
)
from penstock.protocol.registry import GROUP_KEYS, GROUP_VALUES


def test_a_metadata_record_says_its_type_and_version() -> None:
    record = TopicRecord(name="orders", topic_id=b"0123456789abcdef")
    data = encode_metadata(record)
    assert data == b"\x01\x02\x00" + b"\x07orders" + b"0123456789abcdef" + b"\x00"
    assert decode_metadata(data) == (record, 0)


def test_a_metadata_record_can_be_written_in_an_older_version() -> None:
    record, version = decode_metadata(encode_metadata(PartitionRecord(partition_id=3), 0))
    assert (record, version) == (PartitionRecord(partition_id=3), 0)


def test_an_unknown_metadata_record_is_refused() -> None:
    with pytest.raises(KafkaError, match="the metadata log has no record type 99"):
        decode_metadata(b"\x01\x63\x00")
    with pytest.raises(KafkaError, match="TopicRecord has versions 0 to 0, not 5"):
        decode_metadata(b"\x01\x02\x05")
    with pytest.raises(DecodeError, match="frame version 2"):
        decode_metadata(b"\x02\x02\x00")


def test_a_coordinators_key_says_its_type_and_its_value_the_version() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    value = OffsetCommitValue(offset=7, metadata="m")
    key_bytes, value_bytes = encode_coordinator_key(key), encode_coordinator_value(value, 3)
    assert key_bytes == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x01"
    assert value_bytes[:2] == b"\x00\x03"
    assert decode_coordinator(key_bytes, value_bytes, GROUP_KEYS, GROUP_VALUES) == (key, value)


def test_a_tombstone_has_no_value() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=1)
    assert decode_coordinator(encode_coordinator_key(key), None, GROUP_KEYS, GROUP_VALUES) == (key, None)


def test_a_record_cut_short_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode_coordinator(b"\0", None, GROUP_KEYS, GROUP_VALUES)
    with pytest.raises(DecodeError):
        decode_metadata(b"\x01\x02")
