"""What is in a topic, told from a few of its records: those at its beginning and those at its end."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.columnar.ranges import read_range
from penstock.schemas.formats import Format
from penstock.schemas.json_format import Json
from penstock.schemas.plain import BYTES, TEXT
from penstock.sql.catalog import Catalog
from penstock.sql.inference import json_objects, object_type

SAMPLE_PARTITIONS = 8
SAMPLE_RECORDS = 500
"""at either end of a partition"""
SAMPLE_FETCH_BYTES = 262_144
CONTROLS = frozenset(range(32)) - {9, 10, 13}
"""bytes that no text has"""


def sample(catalog: Catalog, topic: str) -> pa.Table:
    """Keys and values at both ends of some partitions."""
    first, last = catalog.first(topic), catalog.last(topic)
    filled = [one for one in catalog.partitions(topic) if first[one] < last[one]]
    step = max(1, -(-len(filled) // SAMPLE_PARTITIONS))
    batches: list[pa.RecordBatch] = []
    for partition in filled[::step]:
        for start, end in _ends(first[partition], last[partition]):
            batches += _read(catalog, topic, partition, start, end)
    schema = pa.schema([pa.field("key", pa.binary()), pa.field("value", pa.binary())])
    return pa.Table.from_batches([one.select(schema.names) for one in batches], schema)


def _ends(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Compaction leaves gaps: a range of offsets may hold fewer records."""
    middle = min(last, first + SAMPLE_RECORDS)
    yield first, middle
    if middle < last:
        yield max(middle, last - SAMPLE_RECORDS), last


def _read(catalog: Catalog, topic: str, partition: int, start: int, end: int) -> list[pa.RecordBatch]:
    brokers = catalog.brokers
    config = {**brokers.config, "max.partition.fetch.bytes": str(SAMPLE_FETCH_BYTES)}
    found: list[pa.RecordBatch] = []
    for batch in read_range(
        brokers.bootstrap,
        topic,
        partition,
        start,
        end,
        wanted=("key", "value"),
        isolation=brokers.isolation,
        config=config,
        lost="skip",
    ):
        found.append(batch)
        if sum(one.nbytes for one in found) > SAMPLE_FETCH_BYTES * 4:
            break
    return found


def guess(data: pa.ChunkedArray, *, objects: bool) -> Format:
    """JSON where `objects` may be and all are, text where all is text, else bytes."""
    present = [one for one in data.to_pylist() if one is not None]
    found = json_objects(present) if objects and present else None
    if found:
        kind = object_type(found)
        if kind.num_fields:
            return Json(kind)
    return TEXT if present and all(map(_is_text, present)) else BYTES


def infer_json(data: pa.ChunkedArray) -> Format | None:
    """JSON by those values that are objects; None where there is none."""
    objects = [one for value in data.to_pylist() if value is not None for one in json_objects([value]) or []]
    kind = object_type(objects)
    return Json(kind) if kind.num_fields else None


def _is_text(data: bytes) -> bool:
    if not CONTROLS.isdisjoint(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
