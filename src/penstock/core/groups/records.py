"""The records of `__consumer_offsets` as Apache Kafka 4.3 writes them.

A key is the int16 id of its type and its body, a value the int16 version of its schema and its body. Offsets are
written in version 4 (in version 1 where the client set their expiry), group metadata in version 3. Older ones are read.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from struct import error as StructError

from penstock.base.errors import DecodeError
from penstock.base.ids import NO_ID
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.protocol.codec import Reader
from penstock.protocol.generated.group_metadata_key import GroupMetadataKey
from penstock.protocol.generated.group_metadata_value import GroupMetadataValue
from penstock.protocol.generated.offset_commit_key import OffsetCommitKey
from penstock.protocol.generated.offset_commit_value import OffsetCommitValue

_VERSION = Struct(">h")
_LENGTH = Struct(">H")
_PARTITION = Struct(">i")
PARTITION_BYTES = _PARTITION.size
"""the end of the key of an offset"""
_OFFSET_AND_EPOCH = Struct(">qi")
_PLAIN_HEAD = Struct(">hqiB")
"""version, offset, epoch, length of the metadata and one more"""
_TIMESTAMP = Struct(">q")

LEGACY_OFFSET_COMMIT = 0
"""the key of brokers before 0.8.2; its body is that of OFFSET_COMMIT"""
OFFSET_COMMIT = 1
GROUP_METADATA = 2
STREAMS_GROUP = 17

OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_VALUE_VERSION = 3

_PLAIN_OFFSET = _VERSION.pack(OFFSET_VALUE_VERSION)
_PLAIN_OFFSET_BYTES = 24
"""version, offset, epoch, a length of one byte and no metadata, timestamp, no tagged fields"""
_PLAIN_METADATA_BYTES_MAX = 126
"""of metadata whose length takes one byte"""
_NO_TAGS = b"\x00"
_NO_TAGS_BYTES = 1
_TOPIC_ID_TAG = b"\x01\x00\x10"
"""one field, its number, its size"""
_TOPIC_ID_BYTES = 19
"""with the id itself"""

_OFFSET_KEY = _VERSION.pack(OFFSET_COMMIT)
_GROUP_KEY = _VERSION.pack(GROUP_METADATA)

FOREIGN_TYPES = {
    9: "share", 10: "share", 11: "share", 12: "share", 13: "share", 14: "share", 15: "share",
    17: "streams", 18: "streams", 19: "streams", 20: "streams", 21: "streams", 22: "streams", 23: "streams",
}  # fmt: skip
"""key type -> the type of group it belongs to; the body of each of these keys begins with the group's id"""
FOREIGN_MEMBER_TYPES = frozenset({10, 19})
"""key types of which each is one member"""


def key_type(key: bytes) -> int:
    if len(key) < _VERSION.size:
        raise DecodeError(f"the key of a group record has {len(key)} bytes")
    kind: int = _VERSION.unpack_from(key)[0]
    return kind


def read_offset_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic, partition."""
    prefix, partition = split_offset_key(key)
    return *read_offset_prefix(prefix), partition


def split_offset_key(key: bytes) -> tuple[bytes, int]:
    """All before the partition, and the partition. By hand: a coordinator that loads reads millions of these."""
    try:
        topic_at = 4 + _LENGTH.unpack_from(key, 2)[0]
        end = topic_at + 2 + _LENGTH.unpack_from(key, topic_at)[0]
        return key[:end], _PARTITION.unpack_from(key, end)[0]
    except StructError:
        raise DecodeError(f"the key of an offset is cut short: {key.hex()}") from None


def last_partition(key: bytes) -> int:
    """Of a key that is known to end with it."""
    return int.from_bytes(key[-4:], "big", signed=True)


def read_offset_prefix(prefix: bytes) -> tuple[str, str]:
    """Group and topic."""
    topic_at = 4 + _LENGTH.unpack_from(prefix, 2)[0]
    group_id = prefix[4:topic_at].decode("utf-8", "surrogateescape")
    return group_id, prefix[topic_at + 2 :].decode("utf-8", "surrogateescape")


def check_offset_value(value: bytes) -> None:
    """DecodeError where it cannot be read."""
    if not _tagged_bytes(value):
        read_offset_value(value)


def read_offset_value(value: bytes) -> OffsetCommitValue:
    """The forms that are written for nearly every commit by hand, every other one by its specification."""
    tagged_bytes = _tagged_bytes(value)
    if not tagged_bytes:
        return OffsetCommitValue.decode(memoryview(value)[2:], _value_version(value))
    offset, leader_epoch = _OFFSET_AND_EPOCH.unpack_from(value, 2)
    time_at = len(value) - tagged_bytes - _TIMESTAMP.size
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=value[15:time_at].decode("utf-8", "surrogateescape"),
        commit_timestamp=_TIMESTAMP.unpack_from(value, time_at)[0],
        topic_id=value[-16:] if tagged_bytes == _TOPIC_ID_BYTES else NO_ID,
    )


def _tagged_bytes(value: bytes) -> int:
    """Of a value in the version that is written: what its tagged fields take, if they are none or the topic's id. Else
    0: nothing is known of it."""
    rest_bytes = len(value) - _PLAIN_OFFSET_BYTES
    if rest_bytes < 0 or value[:2] != _PLAIN_OFFSET:
        return 0
    if value[14] == rest_bytes + 1 and not value[-1]:
        return _NO_TAGS_BYTES
    if value[14] == rest_bytes - 17 > 0 and value[-19:-16] == _TOPIC_ID_TAG:
        return _TOPIC_ID_BYTES
    return 0


def read_group_key(key: bytes) -> str:
    return GroupMetadataKey.decode(memoryview(key)[2:], 0).group


def read_group_value(value: bytes) -> GroupMetadataValue:
    return GroupMetadataValue.decode(memoryview(value)[2:], _value_version(value))


def read_foreign_group_id(key: bytes) -> str:
    return Reader(memoryview(key)[2:]).string(False)


def offset_record(group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> CoordinatorRecord:
    return CoordinatorRecord(_offset_key(group_id, topic, partition), _offset_value(value))


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(_offset_key(group_id, topic, partition), None)


def group_record(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    encoded = _VERSION.pack(GROUP_VALUE_VERSION) + value.encode(GROUP_VALUE_VERSION)
    return CoordinatorRecord(_group_key(group_id), encoded)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_group_key(group_id), None)


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return _offset_prefix(group_id, topic) + _PARTITION.pack(partition)


@lru_cache(maxsize=64)
def _offset_prefix(group_id: str, topic: str) -> bytes:
    """The same for all the partitions of a commit, of which there may be many."""
    whole = _OFFSET_KEY + OffsetCommitKey(group=group_id, topic=topic).encode(0)
    return bytes(whole[:-PARTITION_BYTES])


def _offset_value(value: OffsetCommitValue) -> bytes:
    """What is written for nearly every commit by hand, as it is read; every other form by its specification."""
    metadata = value.metadata.encode("utf-8", "surrogateescape") if value.metadata else b""
    if value.expire_timestamp != -1 or len(metadata) > _PLAIN_METADATA_BYTES_MAX:
        version = OFFSET_VALUE_VERSION if value.expire_timestamp == -1 else OFFSET_VALUE_VERSION_WITH_EXPIRY
        return _VERSION.pack(version) + value.encode(version)
    head = _PLAIN_HEAD.pack(OFFSET_VALUE_VERSION, value.offset, value.leader_epoch, len(metadata) + 1)
    tags = _NO_TAGS if value.topic_id == NO_ID else _TOPIC_ID_TAG + value.topic_id
    return b"".join((head, metadata, _TIMESTAMP.pack(value.commit_timestamp), tags))


def _group_key(group_id: str) -> bytes:
    return _GROUP_KEY + GroupMetadataKey(group=group_id).encode(0)


def _value_version(value: bytes) -> int:
    if len(value) < _VERSION.size:
        raise DecodeError(f"the value of a group record has {len(value)} bytes")
    version: int = _VERSION.unpack_from(value)[0]
    return version
