"""Records to rows, rows to days and hours, footers to statistics."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.pipeline.lake.errors import LakeError
from penstock.pipeline.lake.layout import TIME, Layout, buckets, event_times
from penstock.pipeline.lake.statistics import statistics_of

RECORDS = pa.record_batch(
    {
        "key": pa.array([b"a", None], pa.binary()),
        "value": pa.array([b'{"id": 7, "at": "2026-03-01T10:00:00Z"}', None], pa.binary()),
        "topic": ["orders", "orders"],
        "partition": pa.array([3, 3], pa.int32()),
        "offset": [40, 41],
        "timestamp": pa.array([1_000_000, 2_000_000], TIME),
    }
)


def layout(schema: str | None = "id INT, at TIMESTAMP", **more: Any) -> Layout:
    options = {"subscribe": "orders"} if schema is None else {"valueFormat": "json", "valueSchema": schema}
    return Layout.of(options, **{"errors": "fail", "time_field": None, "headers": False, "raw": False, **more})


def test_a_row_has_the_fields_of_the_value_and_the_place_of_its_record() -> None:
    rows, dead = layout(time_field="at", raw=True).rows(RECORDS)
    assert dead is None
    first, tombstone = rows.to_pylist()
    assert first == {
        "id": 7,
        "at": datetime(2026, 3, 1, 10, tzinfo=UTC),
        "_key": b"a",
        "_topic": "orders",
        "_partition": 3,
        "_offset": 40,
        "_timestamp": datetime(2026, 3, 1, 10, tzinfo=UTC),
        "_value": b'{"id": 7, "at": "2026-03-01T10:00:00Z"}',
    }
    assert tombstone["id"] is None and tombstone["_value"] is None
    assert tombstone["_timestamp"] == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)


def test_a_value_without_fields_is_one_column() -> None:
    rows, _ = layout(None).rows(RECORDS)
    assert rows.schema.names == ["value", "_key", "_topic", "_partition", "_offset", "_timestamp"]
    assert rows.column("value").to_pylist() == RECORDS.column("value").to_pylist()


def test_dead_letters_are_told_apart_with_their_bytes() -> None:
    bad = RECORDS.set_column(1, "value", pa.array([b"no json", b'{"id": 1}'], pa.binary()))
    rows, dead = layout(errors="dead-letters").rows(bad)
    assert rows.column("id").to_pylist() == [1] and "_error" not in rows.schema.names
    assert dead is not None and dead.column("value").to_pylist() == [b"no json"]
    skipped, none = layout(errors="skip").rows(bad)
    assert skipped.num_rows == 1 and none is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1_767_607_200_000], pa.int64()), ([datetime(2026, 1, 5, 10)], pa.timestamp("us")), ([None], pa.timestamp("ms"))],
)
def test_times_of_events_come_in_several_types(values: list[Any], kind: pa.DataType) -> None:
    expected = None if values[0] is None else datetime(2026, 1, 5, 10, tzinfo=UTC)
    assert event_times(pa.array(values, kind)).to_pylist() == [expected]


def timed(errors: str) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Two records, of which the first has its time in nanoseconds where milliseconds were agreed upon."""
    values = [b'{"id": 1, "at": 1767607200000000000}', b'{"id": 2, "at": 1767607200000}']
    records = RECORDS.set_column(1, "value", pa.array(values, pa.binary()))
    return layout("id INT, at BIGINT", time_field="at", errors=errors).rows(records)


def test_a_time_that_no_calendar_has_is_a_record_that_cannot_be_decoded() -> None:
    said = "the value of the record at offset 40 of orders-3 has no time: at is 1767607200000000000, .*errors=keep"
    with pytest.raises(LakeError, match=said):
        timed("fail")
    skipped, _ = timed("skip")
    assert skipped.column("id").to_pylist() == [2]
    rows, dead = timed("dead-letters")
    assert rows.column("id").to_pylist() == [2] and dead is not None and dead.column("offset").to_pylist() == [40]
    first, second = timed("keep")[0].to_pylist()
    assert (
        first["_timestamp"] == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC) and b"1767607200000000000" in first["_value"]
    )
    assert "no time of the years 1 to 9999" in first["_error"]
    assert second["_timestamp"] == datetime(2026, 1, 5, 10, tzinfo=UTC) and second["_error"] is None


def test_days_long_ago_have_four_digits_of_a_year() -> None:
    rows = pa.record_batch({"_timestamp": pa.array([datetime(33, 4, 3)], TIME)})
    assert [values for values, _ in buckets(rows, "day")] == [{"event_day": "0033-04-03"}]


def test_a_schema_that_cannot_be_read_is_told_as_an_error_of_the_load() -> None:
    with pytest.raises(LakeError, match="Spark has no type 'intt'"):
        layout("id INTT")


def test_a_text_is_no_time() -> None:
    with pytest.raises(LakeError, match="declare it as TIMESTAMP"):
        layout("at STRING", time_field="at")


def test_rows_go_to_the_day_and_hour_of_their_event_before_1970_too() -> None:
    times = [datetime(1969, 12, 31, 23, 30), datetime(2026, 1, 5, 7), datetime(1970, 1, 1), datetime(2026, 1, 5, 9)]
    rows = pa.record_batch({"_timestamp": pa.array(times, TIME), "n": [0, 1, 2, 3]})
    by_day = [(values, part.column("n").to_pylist()) for values, part in buckets(rows, "day")]
    assert by_day == [
        ({"event_day": "1969-12-31"}, [0]),
        ({"event_day": "1970-01-01"}, [2]),
        ({"event_day": "2026-01-05"}, [1, 3]),
    ]
    hours = [values for values, _ in buckets(rows, "hour")]
    assert hours[0] == {"event_day": "1969-12-31", "event_hour": "23"} and len(hours) == 4
    assert [values for values, _ in buckets(rows, "none")] == [{}]


def test_statistics_bound_what_is_in_the_file_and_leave_out_what_cannot_be_bounded() -> None:
    table = pa.table(
        {
            "n": [3, None, 1],
            "at": pa.array([1_500, 2_999_999, 1_000_000], TIME),
            "day": [date(2026, 1, 5), None, date(2026, 1, 4)],
            "text": ["b", "a", None],
            "long": ["x" * 40, "y", "z"],
            "x": [1.5, math.nan, 0.5],
            "raw": [b"1", b"2", b"3"],
            "tags": [["a"], [], None],
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=2)
    told = json.loads(statistics_of(pq.read_metadata(file), table.schema))
    assert told["numRecords"] == 3 and told["nullCount"]["n"] == 1
    assert (told["minValues"]["n"], told["maxValues"]["n"]) == (1, 3)
    assert (told["minValues"]["at"], told["maxValues"]["at"]) == (
        "1970-01-01T00:00:00.001Z",
        "1970-01-01T00:00:03.000Z",
    )
    assert (told["minValues"]["day"], told["maxValues"]["day"]) == ("2026-01-04", "2026-01-05")
    assert (told["minValues"]["text"], told["maxValues"]["text"]) == ("a", "b")
    assert {"long", "raw", "tags"}.isdisjoint(told["minValues"])
