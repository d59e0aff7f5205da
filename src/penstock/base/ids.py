"""Names and ids: topic names, topic ids in Kafka's text form, topic-partitions."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from penstock.base.limits import TOPIC_NAME_LENGTH_MAX
from penstock.base.ports import Random

NO_ID = bytes(16)
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
"""The broker has several log directories and picks one itself."""
LOST_DIRECTORY = bytes(15) + b"\x02"
"""The broker had the replica, and cannot use it any more."""
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = bytes(15) + b"\x01"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def id_text(id_bytes: bytes) -> str:
    """A 16-byte id as Kafka prints it: URL-safe base64 without padding, 22 characters."""
    assert len(id_bytes) == 16
    return urlsafe_b64encode(id_bytes)[:22].decode()


def id_from_text(text: str) -> bytes:
    """The reverse of `id_text`. ValueError where it is no id."""
    raw = urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a 16-byte id in base64")
    return raw


def random_id(random: Random) -> bytes:
    """A new id: a version 4 UUID whose text begins with no dash, which a command line would take for an option."""
    while True:
        raw = bytearray(random.bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not id_text(bytes(raw)).startswith("-"):
            return bytes(raw)


def topic_name_fault(name: str) -> str | None:
    """Why Kafka would refuse this topic name, or None where it is legal."""
    if not name:
        return "the topic name is empty"
    if name in (".", ".."):
        return f"the topic name cannot be {name!r}"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"the topic name is {len(name)} characters long, the limit is {TOPIC_NAME_LENGTH_MAX}"
    if not _LEGAL_NAME.fullmatch(name):
        return f"the topic name {name!r} has a character other than a-z, A-Z, 0-9, '.', '_' and '-'"
    return None


def is_valid_text(text: str) -> bool:
    """False where the bytes on the wire were not UTF-8 (they arrive as lone surrogates, so that no two ids alias)."""
    return not any("\ud800" <= c <= "\udfff" for c in text)
