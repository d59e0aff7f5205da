"""Topics of a benchmark: made, filled, counted and deleted, over our own client."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from penstock.base.ids import TopicPartition
from penstock.columnar.encode import BATCH_BYTES
from penstock.columnar.writing import TopicWriter
from penstock.wire.admin import NewTopic, create_topics, delete_topics
from penstock.wire.blocking import Client
from penstock.wire.offsets import LATEST, list_offsets

PARTITIONS = 4
ROWS_A_WRITE = 10_000
NOISE_BYTES = 1_000_000


BRIEF = {"segment.bytes": "67108864", "retention.bytes": "67108864", "file.delete.delay.ms": "0"}
"""A topic that is written and counted keeps the last of its records alone. A virtual machine gives memory that is free
back to its host; to write gigabytes into memory that was given back is to wait for the host, 0.3 GB/s, whoever writes.
So the pages of what was written are used again."""


def create(bootstrap: str, *names: str, configs: Mapping[str, str] = MappingProxyType({})) -> None:
    with Client(bootstrap) as client:
        client.run(create_topics(client.cluster, [NewTopic(name, PARTITIONS, 1, configs) for name in names]))


def delete(bootstrap: str, *names: str) -> None:
    with Client(bootstrap) as client:
        client.run(delete_topics(client.cluster, names))


def ends(bootstrap: str, topic: str) -> dict[int, int]:
    """By partition, the offset after the last record."""
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    with Client(bootstrap) as client:
        found = client.run(list_offsets(client.cluster, dict.fromkeys(places, LATEST)))
    return {place.partition: found[place].offset for place in places}


def count(bootstrap: str, topic: str) -> int:
    """Nothing is in transactions: offsets are records, whether they are still there or not."""
    return sum(ends(bootstrap, topic).values())


def ending_offsets(topic: str, found: dict[int, int], share: float) -> str:
    """The option endingOffsets for the first part of each partition."""
    return json.dumps({topic: {str(partition): int(end * share) for partition, end in found.items()}})


def fill(bootstrap: str, topic: str, records: int, size: int, batch_bytes: int = BATCH_BYTES) -> None:
    """Keys of a few bytes, values half noise and half text, nothing compressed."""
    rows = _rows(min(ROWS_A_WRITE, records), size)
    with TopicWriter(bootstrap, {"batch.size": str(batch_bytes)}, topic=topic) as writer:
        for written in range(0, records, rows.num_rows):
            writer.write(rows.slice(0, min(rows.num_rows, records - written)))
    found = count(bootstrap, topic)
    assert found == records, f"{topic} has {found} of {records} records"


def _rows(count: int, size: int) -> pa.RecordBatch:
    noise = os.urandom(NOISE_BYTES + size)
    values = [(noise[n * 97 % NOISE_BYTES :][: size // 2] + b" plain text" * size)[:size] for n in range(count)]
    keys = [b"key-%d" % n for n in range(count)]
    return pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
