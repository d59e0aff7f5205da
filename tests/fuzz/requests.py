"""Requests made up by chance for a broker that has these topics: valid, then bent field by field, then byte by byte."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

from penstock.base.errors import DecodeError, KafkaError
from penstock.broker.apis import served
from penstock.broker.network.table import Row
from penstock.protocol.frames import RequestHeader, decode_request_header
from penstock.protocol.message import Message, Structure
from penstock.protocol.registry import request_class
from penstock.records.builder import build_batch
from penstock.records.record import Record
from tests.bad_input.raw_client import request_frame
from tests.wire.invention import Inventor

ROWS: list[Row] = served().rows
TOPICS = {
    "fuzz-plain": {},
    "fuzz-compacted": {"cleanup_policy": "compact"},
    "fuzz-packed": {"compression_type": "zstd"},
    "fuzz-flushed": {"flush_messages": "1"},
}
GROUPS = ["fuzz-group-1", "fuzz-group-2"]
CONFIGS = ["cleanup.policy", "retention.ms", "max.message.bytes", "compression.type", "segment.bytes", "match"]
TEXTS = ["", ".", "..", "\udcff", "a/b", "\x00", "x" * 249, "x" * 250, "é" * 300, "\udcfe" * 9_000, "y" * 32_767]
NUMBERS = [0, 1, -1, 2, -2, 127, 128, 255, 256, 32_767, -32_768, 65_535, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
ELEMENTS_MAX = 2_000
PARTITIONS_MAX = 20
"""asked for in one request: more would be legal, and slow"""


class Maker:
    """Frames in a row that depends on the seed alone, and on the topics' ids that the broker gave."""

    def __init__(self, seed: int, topic_ids: dict[str, bytes]) -> None:
        self.chance = random.Random(seed)
        self._ids = list(topic_ids.values()) or [bytes(16)]

    def frame(self) -> bytes:
        """A frame with its length: valid now and then, mostly not."""
        while True:
            row = self.chance.choice(ROWS)
            version = self.chance.randint(row.min_version, row.max_version)
            request = self.request(row, version)
            for _ in range(self.chance.choice([0, 0, 1, 1, 2, 5])):
                self.bend(request)
            try:
                body = bytes(request.encode(version))
            except Exception:  # bent into something that no encoder can write, in whatever way
                continue
            client_id = self.chance.choice(["fuzz", "fuzz", None, "", "\udcff", "c" * 300])
            frame = request_frame(RequestHeader(row.key, version, self.chance.randrange(2**31), client_id), body)
            if self.chance.random() < 0.6:
                frame = self.bytes_bent(frame)
            if not self.disturbs(frame):
                return frame

    def request(self, row: Row, version: int) -> Message:
        request = request_class(row.key).read(Inventor(self.chance, tame=self.chance.random() < 0.7), version)
        for owner, name in fields_of(request):
            self.ground(owner, name)
        return request

    def ground(self, owner: Any, name: str) -> None:
        """Give a field a value with a meaning, most of the time, so that the request gets far."""
        chance, value = self.chance, getattr(owner, name)
        if chance.random() < 0.15:
            return
        if name in ("name", "topic", "topic_name", "resource_name", "topics", "topic_names") and isinstance(value, str):
            setattr(owner, name, chance.choice(list(TOPICS)))
        elif name == "config_name" or (name == "name" and "Config" in type(owner).__name__):
            setattr(owner, name, chance.choice(CONFIGS))
        elif name in ("group_id", "key"):
            setattr(owner, name, chance.choice(GROUPS))
        elif name == "topic_id":
            setattr(owner, name, chance.choice(self._ids))
        elif name in ("records", "metrics"):
            setattr(owner, name, self.batch())
        elif name in _SENSIBLE:
            setattr(owner, name, chance.choice(_SENSIBLE[name]))

    def batch(self) -> bytes:
        """One record batch, half of the time with a few bytes changed."""
        chance, now_ms = self.chance, time.time_ns() // 1_000_000
        records = [
            Record.of(chance.choice([b"k", b"", None]), chance.randbytes(chance.choice([0, 5, 300])), now_ms)
            for _ in range(chance.choice([1, 2, 20]))
        ]
        how = chance.choice([{}, {"producer_id": chance.randrange(3), "producer_epoch": 0, "base_sequence": 0}])
        batch = bytes(build_batch(records, codec=chance.randrange(5), **how))
        return self.bytes_bent(batch) if chance.random() < 0.5 else batch

    def bend(self, request: Message) -> None:
        """One field anywhere in the request gets a value that nobody expects there."""
        places = list(fields_of(request))
        if not places:
            return
        chance = self.chance
        owner, name = chance.choice(places)
        value = getattr(owner, name)
        bent: Any
        if isinstance(value, bool):
            bent = not value
        elif isinstance(value, int):
            bent = chance.choice(NUMBERS)
        elif isinstance(value, str):
            bent = chance.choice([*TEXTS, None])
        elif isinstance(value, list):
            bent = chance.choice([[], value * 2, value * 40, None])
            bent = bent if bent is None else bent[:ELEMENTS_MAX]
        else:
            bent = chance.choice([b"", None, chance.randbytes(40), self.batch()])
        setattr(owner, name, bent)

    def bytes_bent(self, data: bytes) -> bytes:
        """Bits flipped, pieces cut, doubled, put in, or claims put over what is there."""
        chance, out = self.chance, bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(out) + 1)
            kind = chance.randrange(6)
            if kind == 0 and at < len(out):
                out[at] ^= 1 << chance.randrange(8)
            elif kind == 1 and at < len(out):
                out[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
            elif kind == 2:
                out[at:at] = chance.choice(
                    [b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", bytes(8), chance.randbytes(6)]
                )
            elif kind == 3:
                out[at : at + 4] = chance.choice([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0"])
            elif kind == 4:
                del out[at : at + chance.choice([1, 2, 8, 200])]
            else:
                out[at:at] = out[at : at + chance.choice([1, 8, 60])]
        if chance.random() < 0.9 and len(out) > 4:
            out[:4] = (len(out) - 4).to_bytes(4, "big")
        return bytes(out)

    def disturbs(self, frame: bytes) -> bool:
        """Whether it may rightly ask for thousands of partitions, or for the broker to be unregistered."""
        try:
            header, at = decode_request_header(frame[4:])
            if header.api_key not in (19, 37, 64):
                return False
            request: Any = request_class(header.api_key).decode(memoryview(frame)[4 + at :], header.api_version)
        except (DecodeError, KafkaError):
            return False
        if header.api_key == 64:
            return bool(request.broker_id == NODE)
        asked = [getattr(one, "num_partitions", getattr(one, "count", 0)) for one in request.topics]
        return any(PARTITIONS_MAX < one <= 10_000 for one in asked)


NODE = 1
"""the broker that is fuzzed"""

_SENSIBLE: dict[str, list[Any]] = {
    "acks": [0, 1, -1],
    "max_wait_ms": [0, 1, 5],
    "min_bytes": [0, 1],
    "timeout_ms": [0, 100],
    "session_timeout_ms": [6_000],
    "rebalance_timeout_ms": [50],
    "initial_rebalance_delay_ms": [0],
    "validate_only": [True],
    "validate_only_": [True],
    "num_partitions": [-1, 1, 2],
    "replication_factor": [-1, 1],
    "assignments": [[]],
    "count": [1, 2, 3],
    "partition": [0],
    "partition_index": [0],
    "index": [0],
    "partition_indexes": [[0], [0, 1]],
    "partitions_with_error": [[]],
    "fetch_offset": [0, 1],
    "current_leader_epoch": [-1, 0],
    "last_fetched_epoch": [-1],
    "replica_id": [-1],
    "session_id": [0],
    "session_epoch": [-1, 0],
    "timestamp": [-1, -2, -3, 0],
    "generation_id": [-1, 1],
    "generation_id_or_member_epoch": [-1, 1],
    "member_id": [""],
    "group_instance_id": [None],
    "protocol_type": ["consumer"],
    "resource_type": [2],
    "key_type": [0],
    "transactional_id": [None],
    "compression_type": [0, 1, 4],
    "coordinator_keys": [GROUPS],
    "groups_names": [GROUPS],
}


def fields_of(structure: Any) -> Iterator[tuple[Any, str]]:
    """Every field of a message and of the structures in it."""
    for name in structure.__slots__:
        yield structure, name
        value = getattr(structure, name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Structure):
                yield from fields_of(item)
