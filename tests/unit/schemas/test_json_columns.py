"""JSON as columns: fast where all is well, exact where it is not."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schemas.ddl import arrow_type
from penstock.schemas.errors import Undecodable
from penstock.schemas.json_format import CHUNK_ROWS, Json
from penstock.schemas.serdes import JsonSerde
from tests.unit.schemas.arrow_values import columns

ORDER = Json(arrow_type("id BIGINT NOT NULL, note STRING, price DOUBLE"))


def decoded(form: Json, *rows: bytes | None) -> list[object]:
    """What each row gave: its value, or why it has none."""
    read = form.decode(pa.array(rows, pa.binary()))
    assert len(read.values) == len(read.reasons) == len(rows)
    read.values.validate(full=True)
    return [
        value if reason is None else f"! {reason}"
        for value, reason in zip(read.values.to_pylist(), read.reasons.to_pylist(), strict=True)
    ]


def test_objects_become_structs_and_nulls_stay():
    assert decoded(ORDER, b'{"id": 1, "note": "a", "price": 1}', None, b"null", b' {"price":2.5,"id":2,"x":[{}]} ') == [
        {"id": 1, "note": "a", "price": 1.0},
        None,
        None,
        {"id": 2, "note": None, "price": 2.5},
    ]


def test_a_wrong_row_has_a_reason_and_fails_no_other():
    assert decoded(ORDER, b'{"id":1}', b'{"id":"1"}', b"{oops", b"", b'{"note":"x"}', b'{"id":2}') == [
        {"id": 1, "note": None, "price": None},
        "! id: an integer of 64 bits was expected, not a text ('1')",
        "! not JSON: object keys must be strings (byte 1)",
        "! not JSON: the value is empty",
        "! id: a value was expected, not null",
        {"id": 2, "note": None, "price": None},
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [b'{"id":1}{"id":2}', b" "],
        [b'{"id":1},{"id":2}', b""],
        [b'{"id":1}]}\n{"v":[{"id":2}', b"   "],
        [b'{"id":1}]]],"x":[[[2'],
        [b'{"id":1}]],[[{"id":2}', b'{"id":1}],[2'],
        [b'{"id":1', b',"price":2}', b'{"id":3}\n{"id":4}'],
        [b'{"id":1,"note":"', b'"}'],
        [b'{"id":[', b'{"id":1}]}', b'{"id":1}{"id":2}'],
    ],
)
def test_values_never_flow_into_their_neighbours(rows: list[bytes]):
    last = b'{"id": 9}'
    found = decoded(ORDER, *rows, last)
    assert found[-1] == {"id": 9, "note": None, "price": None}
    assert all(str(one).startswith("! not JSON") for one in found[:-1])


def test_a_value_may_be_written_over_several_lines():
    text = json.dumps({"id": 1, "note": "two\nlines"}, indent=2).encode()
    assert decoded(ORDER, *[text] * 3) == [{"id": 1, "note": "two\nlines", "price": None}] * 3


def test_text_that_is_no_utf8_is_refused_even_in_a_member_that_nobody_asked_for():
    assert decoded(ORDER, b'{"id":1,"note":"\xff"}', b'{"id":2,"other":"\xff"}', b'{"id":3}') == [
        "! not JSON: not UTF-8 (invalid start byte)",
        "! not JSON: not UTF-8 (invalid start byte)",
        {"id": 3, "note": None, "price": None},
    ]


def test_of_a_member_that_comes_twice_the_last_counts():
    assert decoded(ORDER, b'{"id":1,"id":2}') == [{"id": 2, "note": None, "price": None}]


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"id":' * 100_000, b'{"x":' + b"[" * 100_000 + b"}"])
def test_a_bottomless_value_is_a_wrong_row(deep: bytes):
    found = decoded(ORDER, deep, b'{"id": 9}')
    assert found == ["! not JSON that is read here: it is nested too deep", {"id": 9, "note": None, "price": None}]
    with pytest.raises(Undecodable, match="too deep"):
        JsonSerde().decode(deep)


def test_not_a_number_is_read_as_python_and_java_write_it():
    read = decoded(Json(arrow_type("a DOUBLE, b DOUBLE")), b'{"a": NaN, "b": -Infinity}', b'{"a": "NaN"}')
    assert str(read[0]) == "{'a': nan, 'b': -inf}"
    assert read[1] == "! a: a number was expected, not a text ('NaN')"


def test_dates_and_times_are_iso_texts():
    form = Json(arrow_type("at TIMESTAMP, local TIMESTAMP_NTZ, day DATE"))
    assert decoded(
        form,
        b'{"at":"2024-01-02T03:04:05.123456Z","local":"2024-01-02 03:04","day":"2024-02-29"}',
        b'{"at":"2024-01-02T03:04:05.123456789+02:00"}',
        b'{"at":"2024-01-02"}',
        b'{"day":"2023-02-29"}',
        b'{"at":1700000000}',
    ) == [
        {
            "at": datetime(2024, 1, 2, 3, 4, 5, 123456, UTC),
            "local": datetime(2024, 1, 2, 3, 4),
            "day": date(2024, 2, 29),
        },
        {"at": datetime(2024, 1, 2, 1, 4, 5, 123456, UTC), "local": None, "day": None},
        {"at": datetime(2024, 1, 2, tzinfo=UTC), "local": None, "day": None},
        "! day: a date (2024-12-31) was expected, not a text ('2023-02-29')",
        "! at: a text was expected, not 1700000000",
    ]


def test_decimals_are_exact_or_refused():
    form = Json(arrow_type("sum DECIMAL(6, 2)"))
    assert decoded(form, b'{"sum":0.1}', b'{"sum":"12.50"}', b'{"sum":1.005}', b'{"sum":12345.67}') == [
        {"sum": Decimal("0.10")},
        {"sum": Decimal("12.50")},
        "! sum: a decimal of 6 digits, 2 of them behind the point, was expected, not 1.005",
        "! sum: a decimal of 6 digits, 2 of them behind the point, was expected, not 12345.67",
    ]


def test_maps_and_bytes():
    form = Json(arrow_type("counts MAP<STRING, INT>, raw BINARY"))
    assert decoded(
        form, b'{"counts":{"a":1,"b":null},"raw":"aGk="}', b'{"counts":{"a":3000000000}}', b'{"raw":"*"}'
    ) == [
        {"counts": [("a", 1), ("b", None)], "raw": b"hi"},
        "! counts.a: an integer of 32 bits was expected, not 3000000000",
        "! raw: base64 was expected, not a text ('*')",
    ]


def test_any_type_may_stand_alone():
    assert decoded(Json(pa.int64()), b"1", b"1.0", b"1.5", b"9223372036854775808") == [
        1,
        1,
        "! an integer of 64 bits was expected, not 1.5",
        "! an integer of 64 bits was expected, not 9223372036854775808",
    ]
    assert decoded(Json(pa.list_(pa.string())), b'["a",null]', b"{}") == [
        ["a", None],
        "! an array was expected, not an object",
    ]


def test_one_wrong_row_among_many_costs_its_own_value_alone():
    rows: list[bytes | None] = [b'{"id": %d}' % number for number in range(3 * CHUNK_ROWS)]
    rows[CHUNK_ROWS + 7] = b"[]"
    rows[5] = None
    read = ORDER.decode(pa.array(rows, pa.binary()))
    assert read.failed == 1
    assert read.mask.to_pylist().index(True) == CHUNK_ROWS + 7
    expected = [None if at in (5, CHUNK_ROWS + 7) else at for at in range(len(rows))]
    assert read.values.field("id").to_pylist()[:5] == [0, 1, 2, 3, 4]
    assert [one and one["id"] for one in read.values.to_pylist()] == expected


def test_chunked_columns_and_slices_are_read_whole():
    column = pa.chunked_array([[b'{"id":1}'], [b'{"id":2}', b'{"id":3}']])
    assert ORDER.decode(column).values.field("id").to_pylist() == [1, 2, 3]
    assert ORDER.decode(pa.array([b"x", b'{"id":4}', b"y"])[1:2]).values.field("id").to_pylist() == [4]


def test_a_format_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(ORDER)).decode(pa.array([b'{"id":1}'])).failed == 0


@given(columns())
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_again(column: pa.Array):
    form = Json(column.type)
    read = form.decode(form.encode(column))
    assert read.failed == 0
    assert read.values.to_pylist() == column.to_pylist()


PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b",", b":", b'"a"', b'"b"', b'"', b"1", b"1.0", b"-2", b"true", b"null", b"NaN", b" ",
     b"\n", b"\r", b'{"a":1}', b'{"a":"x","b":[1,2]}', b'{"b":[]}', b"\xff", b'"\\u00e9"', b'"2024-01-01"', b"1e400",
     b"\x00", b"]]]", b"[[[", b']]],"x":[[[']
)  # fmt: skip
DOCUMENTS = st.lists(PIECES, max_size=6).map(b"".join)
KINDS = ["a BIGINT, b ARRAY<INT>", "a STRING NOT NULL, b STRING", "a DATE, b STRUCT<a: BOOLEAN>", "a DOUBLE"]


@given(st.lists(DOCUMENTS, max_size=5), st.sampled_from(KINDS))
@settings(max_examples=300, deadline=None)
def test_columns_and_rows_agree_on_whatever_comes(rows: list[bytes], kind: str):
    form = Json(arrow_type(kind))
    together = decoded(form, *rows)
    alone = [one for row in rows for one in decoded(form, row)]
    by_row = form._by_row(pa.array(rows, pa.binary()))
    assert str(together) == str(alone)
    expected = [
        value if reason is None else f"! {reason}"
        for value, reason in zip(by_row.values.to_pylist(), by_row.reasons.to_pylist(), strict=True)
    ]
    assert str(together) == str(expected)
