"""Which small files become one, and their rows in the order of their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from penstock.pipeline.lake.files import DataFile
from penstock.pipeline.lake.layout import PLACE_COLUMNS

BATCH_ROWS = 65_536


def groups(files: Iterable[DataFile], file_bytes: int) -> list[list[DataFile]]:
    """Files of one partition that are small, together as large as one file should be; a file alone stays as it is."""
    small = [file for file in files if file.size_bytes < file_bytes // 2]
    by_partition: dict[tuple[tuple[str, str], ...], list[DataFile]] = {}
    for file in sorted(small, key=lambda file: file.path):
        by_partition.setdefault(tuple(sorted(file.partition.items())), []).append(file)
    found: list[list[DataFile]] = []
    for of_partition in by_partition.values():
        found += [group for group in _cut(of_partition, file_bytes) if len(group) > 1]
    return found


def _cut(files: list[DataFile], file_bytes: int) -> Iterator[list[DataFile]]:
    group: list[DataFile] = []
    size = 0
    for file in files:
        if group and size + file.size_bytes > file_bytes:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.size_bytes
    if group:
        yield group


def in_order(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """By topic, partition and offset: then a file's row groups tell which offsets they have."""
    ordered = rows.sort_by([(name, "ascending") for name in PLACE_COLUMNS])
    yield from ordered.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
