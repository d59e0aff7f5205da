"""Rows of a result on stdout: columns that line up, an object a line, or CSV."""

from __future__ import annotations

import base64
import csv
import datetime
import decimal
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

WIDTH_ROWS = 200
"""rows that the widths of columns are measured by; those after them are printed as they come"""
CELL_LENGTH_MAX = 60
NULL = "-"


class Printer(Protocol):
    def rows(self, batches: Iterator[pa.RecordBatch]) -> None: ...


def printer(format_: str, schema: pa.Schema, *, at_once: bool) -> Printer:
    """`at_once`: a row is printed when it comes, not when there are enough to measure them."""
    if format_ == "json":
        return _Lines(schema)
    return _Csv(schema) if format_ == "csv" else _Text(schema, 1 if at_once else WIDTH_ROWS)


def _values(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[list[Any], bool]]:
    """Each row, and whether it is the last that is there for now."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for at in range(batch.num_rows):
            yield [column[at] for column in columns], at + 1 == batch.num_rows


class _Lines:
    """JSON: an object a line."""

    def __init__(self, schema: pa.Schema) -> None:
        self._names = schema.names

    def rows(self, batches: Iterator[pa.RecordBatch]) -> None:
        for row, last in _values(batches):
            found = dict(zip(self._names, map(plain, row), strict=True))
            sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
            if last:
                sys.stdout.flush()


class _Csv:
    def __init__(self, schema: pa.Schema) -> None:
        self._names = schema.names

    def rows(self, batches: Iterator[pa.RecordBatch]) -> None:
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(self._names)
        for row, last in _values(batches):
            out.writerow(["" if one is None else _shown(one) for one in row])
            if last:
                sys.stdout.flush()


class _Text:
    """Columns that line up, numbers to the right."""

    def __init__(self, schema: pa.Schema, measured: int) -> None:
        self._names = [_cut(name) for name in schema.names]
        self._right = [_is_number(field.type) for field in schema]
        self._measured = measured

    def rows(self, batches: Iterator[pa.RecordBatch]) -> None:
        cells = (([NULL if one is None else _cut(_shown(one)) for one in row], last) for row, last in _values(batches))
        head = list(itertools.islice(cells, self._measured))
        widths = [
            max(len(row[at]) for row in [self._names, *(row for row, _ in head)]) for at in range(len(self._names))
        ]
        self._print(self._names, widths)
        for row, last in itertools.chain(head, cells):
            self._print(row, widths)
            if last:
                sys.stdout.flush()

    def _print(self, row: list[str], widths: list[int]) -> None:
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, self._right, strict=True)
        ]
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def plain(value: Any) -> Any:
    """What JSON can hold; bytes that are no text as base64 with that word in front."""
    match value:
        case bytes():
            return _text_of(value)
        case decimal.Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime.datetime():
            return value.isoformat().replace("+00:00", "Z")
        case datetime.date() | datetime.time() | datetime.timedelta():
            return str(value)
        case pa.MonthDayNano():
            return _interval(value)
        case dict():
            return {name: plain(one) for name, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case float() if value * 0 != 0:
            return str(value)
    return value


def _interval(value: pa.MonthDayNano) -> str:
    """As DuckDB prints it: 1 month 2 days 03:04:05.5"""
    named = [(value.months, "month"), (value.days, "day")]
    words = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for count, unit in named if count]
    seconds, nanos = divmod(abs(value.nanoseconds), 1_000_000_000)
    fraction = f".{nanos:09}".rstrip("0").rstrip(".")
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
    return " ".join([*words, *([f"{'-' * (value.nanoseconds < 0)}{clock}"] if value.nanoseconds or not words else [])])


def _text_of(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"


def _shown(value: Any) -> str:
    simple = plain(value)
    if isinstance(simple, str):
        return simple
    return json.dumps(simple, ensure_ascii=False)


def _cut(text: str) -> str:
    line = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return line if len(line) <= CELL_LENGTH_MAX else line[: CELL_LENGTH_MAX - 1] + "…"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
