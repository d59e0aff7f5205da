"""How records become rows: the value's fields first, then where the record came from.

| column | what |
|---|---|
| the value's fields | decoded; a value that has none (bytes, text, a number) is the one column `value` |
| `_key` | bytes, or decoded by keyFormat |
| `_topic`, `_partition`, `_offset` | where the record is: together they are a row's identity |
| `_timestamp` | the event's time: of the record, or the value's field that `time_field` names, where it is not null |
| `_headers` | if asked for |
| `_value` | the value as it was: of all records if asked for, else of those that could not be decoded |
| `_error` | where errors are kept: why a record could not be decoded, else null |

A record without a value (a tombstone) is a row whose fields are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.pipeline.formats import Formats, formats_of, place_of
from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.registry import RegistryError
from penstock.pipeline.source.schema import RECORD
from penstock.schemas.errors import SchemaError, Undecodable

TIME = pa.timestamp("us", "UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
PLACE_COLUMNS = ("_topic", "_partition", "_offset")
OWN_COLUMNS = ("_key", *PLACE_COLUMNS, "_timestamp", "_headers", "_value", "_error")
PARTITION_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "day": {"event_day": pa.date32()},
    "hour": {"event_day": pa.date32(), "event_hour": pa.int32()},
    "none": {},
}
ERRORS = ("fail", "keep", "skip", "dead-letters")
MODES = {"fail": "FAILFAST", "keep": "PERMISSIVE", "skip": "DROPMALFORMED", "dead-letters": "PERMISSIVE"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
LAST_US = (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
NEXT_STEP = (
    "errors=keep keeps such records as bytes with the reason, errors=skip leaves them out, and dead letters are a "
    "topic for them"
)


@dataclass(frozen=True)
class Layout:
    """Goes to every task."""

    formats: Formats
    errors: str = "fail"
    time_field: str | None = None
    headers: bool = False
    raw: bool = False
    """keep every value as it was, beside what was decoded."""

    @classmethod
    def of(cls, options: Mapping[str, str], *, errors: str, time_field: str | None, headers: bool, raw: bool) -> Layout:
        """`options` are the source's. Raises LakeError for what cannot be rows of a table."""
        for name in options:
            if name.lower() in ("mode", "errorcolumn", "columns", "includeheaders"):
                raise LakeError(f"the option {name} is not for a load: `errors` and `headers` say what becomes of rows")
        if errors not in ERRORS:
            raise LakeError(f"errors is one of {', '.join(ERRORS)}, not {errors!r}")
        asked = {**options, "mode": MODES[errors]}
        if errors in ("keep", "dead-letters"):
            asked["errorColumn"] = "_error"
        try:
            layout = cls(formats_of(asked), errors, time_field, headers, raw)
            layout._check()
        except (SchemaError, RegistryError) as error:
            raise LakeError(str(error)) from None
        return layout

    @property
    def source_columns(self) -> str:
        """What the source is to read."""
        return "key,value,topic,partition,offset,timestamp" + (",headers" if self.headers else "")

    @cached_property
    def schema(self) -> pa.Schema:
        """Of the rows; every column may be null, as tombstones have none of the value's."""
        read = to_arrow_schema(self.formats.spark_schema(RECORD), timezone="UTC")
        value = read.field("value").type
        fields = list(value) if pa.types.is_struct(value) else [pa.field("value", value)]
        own = {
            "_key": read.field("key").type,
            "_topic": pa.string(),
            "_partition": pa.int32(),
            "_offset": pa.int64(),
            "_timestamp": TIME,
        }
        if self.headers:
            own["_headers"] = HEADERS
        if self.raw or self.errors == "keep":
            own["_value"] = pa.binary()
        if self.errors == "keep":
            own["_error"] = pa.string()
        return pa.schema([*(pa.field(field.name, field.type) for field in fields), *own.items()])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "schema"}

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
        """The rows of a batch of records; and, where dead letters are kept elsewhere, the records that are none,
        with their reasons in the column `_error`."""
        read = self._timed(self._decoded(batch.append_column("_raw", batch.column("value"))))
        dead = None
        if self.errors == "dead-letters":
            said = read.column("_error")
            if said.null_count < len(said):
                dead = batch.append_column("_error", said).filter(pc.is_valid(said))
                read = read.filter(pc.is_null(said))
        return self._shaped(read), dead

    def _decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return self.formats.apply(batch)
        except Undecodable as error:
            raise LakeError(f"{error.reason.partition('; mode ')[0]}; {NEXT_STEP}") from None

    def _timed(self, read: pa.RecordBatch) -> pa.RecordBatch:
        """The same with the column `_time`, where a field of the value is the event's time. A record whose field is no
        time is one that cannot be decoded: no table has a day for it."""
        if self.time_field is None:
            return read
        field = dict(self._fields(read.column("value")))[self.time_field]
        times = event_times(field)
        wrong = pc.and_(pc.is_valid(field), pc.is_null(times))
        read = read.append_column("_time", times)
        if not pc.any(wrong).as_py():
            return read
        reasons = [f"{self.time_field} is {one}, which is no time of the years 1 to 9999" for one in _texts(field)]
        said = pc.if_else(wrong, pa.array(reasons, pa.string()), pa.scalar(None, pa.string()))
        if self.errors == "fail":
            row = pc.index(wrong, True).as_py()
            raise LakeError(f"the value of {place_of(read, row)} has no time: {said[row].as_py()}; {NEXT_STEP}")
        if self.errors == "skip":
            return read.filter(pc.is_null(said))
        at = read.schema.get_field_index("_error")
        return read.set_column(at, "_error", pc.coalesce(read.column(at), said))

    @staticmethod
    def _fields(value: pa.Array) -> Iterator[tuple[str, pa.Array]]:
        """`flatten` and not `field`: of a struct that is null, every field is."""
        if pa.types.is_struct(value.type):
            return zip([field.name for field in value.type], value.flatten(), strict=True)
        return iter([("value", value)])

    def _shaped(self, read: pa.RecordBatch) -> pa.RecordBatch:
        found: dict[str, pa.Array] = dict(self._fields(read.column("value")))
        found |= {f"_{name}": read.column(name) for name in ("key", "topic", "partition", "offset", "timestamp")}
        if self.headers:
            found["_headers"] = read.column("headers")
        if self.time_field is not None:
            found["_timestamp"] = pc.coalesce(read.column("_time"), found["_timestamp"])
        if self.errors == "keep":
            found["_error"] = read.column("_error")
        if self.raw:
            found["_value"] = read.column("_raw")
        elif self.errors == "keep":
            found["_value"] = pc.if_else(
                pc.is_valid(found["_error"]), read.column("_raw"), pa.scalar(None, pa.binary())
            )
        columns = [found[field.name].cast(field.type) for field in self.schema]
        return pa.record_batch(columns, schema=self.schema)

    def _check(self) -> None:
        fields = [name for name in self.schema.names if name not in OWN_COLUMNS]
        taken = {*OWN_COLUMNS, *PARTITION_COLUMNS["hour"]}
        clash = next((name for name in _value_names(self.formats) if name.lower() in taken), None)
        if clash is not None:
            raise LakeError(f"the value has a field {clash}, which is the name of a column that a load adds: rename it")
        if self.time_field is None:
            return
        if self.time_field not in fields:
            raise LakeError(
                f"the value has no field {self.time_field} for the event's time; it has {', '.join(fields)}"
            )
        event_times(pa.array([], self.schema.field(self.time_field).type))


def _value_names(formats: Formats) -> list[str]:
    kind = to_arrow_schema(formats.spark_schema(RECORD), timezone="UTC").field("value").type
    return [field.name for field in kind] if pa.types.is_struct(kind) else []


def event_times(values: pa.Array) -> pa.Array:
    """A value's field as times: a timestamp, a date, or whole milliseconds since 1970; null where no calendar has such
    a time, as where somebody wrote nanoseconds."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return _within(values.cast(pa.int64()), {"s": 1_000_000, "ms": 1_000, "us": 1}[kind.unit])
    if pa.types.is_date32(kind):
        return _within(values.cast(pa.int32()).cast(pa.int64()), 86_400_000_000)
    if pa.types.is_integer(kind):
        return _within(values.cast(pa.int64()), 1_000)
    raise LakeError(
        f"an event's time is a timestamp, a date or milliseconds since 1970, and this field is {kind}: declare it as "
        "TIMESTAMP in the value's schema"
    )


def _within(numbers: pa.Array, unit_us: int) -> pa.Array:
    """Times since 1970 in that unit, those of the years 1 to 9999."""
    low, high = pa.scalar(-(-FIRST_US // unit_us)), pa.scalar(LAST_US // unit_us)
    known = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    kept = pc.if_else(known, numbers, pa.scalar(None, pa.int64()))
    return pc.multiply(kept, unit_us).cast(TIME)


def _texts(values: pa.Array) -> list[str]:
    """Python has no time outside of these years either: such times are told as numbers."""
    return [str(one) for one in values.cast(pa.int64() if values.type.bit_width == 64 else pa.int32()).to_pylist()]


def buckets(rows: pa.RecordBatch, by: str) -> Iterator[tuple[dict[str, str], pa.RecordBatch]]:
    """The rows of each day or hour, with the values of the partition columns as texts, the earliest first."""
    if by == "none":
        yield {}, rows
        return
    times = rows.column("_timestamp").cast(pa.int64())
    size_us = 86_400_000_000 if by == "day" else 3_600_000_000
    numbers = _floor_divide(times, size_us)
    for number in sorted(numbers.unique().to_pylist()):
        part = rows if len(numbers.unique()) == 1 else rows.filter(pc.equal(numbers, number))
        yield values_of(number, by), part


def values_of(number: int, by: str) -> dict[str, str]:
    """Of the `number`-th day or hour since 1970."""
    begin = EPOCH + (timedelta(days=number) if by == "day" else timedelta(hours=number))
    day = {"event_day": begin.date().isoformat()}
    return day if by == "day" else {**day, "event_hour": str(begin.hour)}


def directory_of(values: Mapping[str, str]) -> str:
    """`event_day=2026-01-05/event_hour=7`, as every engine reads it; empty for a table without partitions."""
    return "/".join(f"{name}={value}" for name, value in values.items())


def _floor_divide(values: pa.Array, by: int) -> pa.Array:
    """Arrow's own division rounds towards zero, and there are times before 1970."""
    quotient = pc.divide(values, by)
    below = pc.less(pc.subtract(values, pc.multiply(quotient, by)), 0)
    return pc.subtract(quotient, below.cast(pa.int64()))
