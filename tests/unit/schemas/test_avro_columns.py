"""Avro as columns, with fastavro as the judge."""

from __future__ import annotations

import io
import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schemas.avro_format import Avro
from penstock.schemas.avro_schema import avro_schema
from penstock.schemas.errors import SchemaError, Undecodable
from tests.unit.schemas.arrow_values import columns

ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "items", "type": {"type": "array", "items": ITEM}},
        {"name": "first", "type": ["Item", "null"]},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "SHUT"]}},
    ],
}
ROW = {
    "id": -3,
    "note": "é",
    "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": -1}],
    "first": None,
    "tags": {"x": 0.5},
    "state": "SHUT",
}
LOGICAL = {
    "at": ("long", "timestamp-millis", 1_700_000_000_123, datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)),
    "micros": ("long", "timestamp-micros", -1, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    "nanos": ("long", "timestamp-nanos", 1_500, datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
    "local": ("long", "local-timestamp-millis", 1, datetime(1970, 1, 1, 0, 0, 0, 1000)),
    "day": ("int", "date", -1, date(1969, 12, 31)),
    "clock": ("int", "time-millis", 5, 5),
    "id": ("string", "uuid", "8a1b", "8a1b"),
}


def written(schema: Any, value: Any) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), value)
    return target.getvalue()


def test_records_become_structs():
    read = Avro(ORDER).decode(pa.array([written(ORDER, ROW), None]))
    assert read.failed == 0
    read.values.validate(full=True)
    assert read.values.to_pylist() == [ROW | {"tags": [("x", 0.5)]}, None]


@pytest.mark.parametrize("name", LOGICAL)
def test_logical_types_become_their_own(name: str):
    word, logical, stored, meant = LOGICAL[name]
    schema = {"type": "record", "name": "R", "fields": [{"name": "v", "type": {"type": word, "logicalType": logical}}]}
    bare = {"type": "record", "name": "R", "fields": [{"name": "v", "type": word}]}
    assert Avro(schema).decode(pa.array([written(bare, {"v": stored})])).values.to_pylist() == [{"v": meant}]


def test_decimals_keep_their_sign_and_scale():
    for inner in ({"type": "bytes"}, {"type": "fixed", "name": "F", "size": 9}):
        schema = inner | {"logicalType": "decimal", "precision": 20, "scale": 2}
        rows = [Decimal("12.34"), Decimal("-0.01"), Decimal("999999999999999999.99")]
        read = Avro(schema).decode(pa.array([written(schema, one) for one in rows]))
        assert read.values.to_pylist() == rows


def test_a_union_of_several_types_has_a_column_for_each():
    schema = ["null", "string", {"type": "array", "items": "int"}]
    rows = [written(schema, one) for one in ("a", None, [1, 2])]
    assert Avro(schema).decode(pa.array(rows)).values.to_pylist() == [
        {"member0": "a", "member1": None},
        None,
        {"member0": None, "member1": [1, 2]},
    ]
    assert Avro(schema).encode(Avro(schema).decode(pa.array(rows)).values).to_pylist() == [rows[0], None, rows[2]]


def test_blocks_with_their_size_in_front_are_read():
    numbers = b"\x03\x04\x02\x04\x01\x02\x06\x00"  # two items in a block of 2 bytes, then one of 1, then the end
    assert Avro({"type": "array", "items": "long"}).decode(pa.array([numbers])).values.to_pylist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (b"", "ends too early"),
        (b"\x80" * 11, "more than ten bytes"),
        (b"\x02\x06a", "a union has no such branch"),
        (b"\x02\x02\x7fa", "ends too early"),
        (b"\x02\x02\x02\xff" + b"\x00" * 3, "not UTF-8"),
        (b"\x02\x00\xfe\xff\xff\x7f", "longer than the value"),
        (b"\x02\x00\x00\x02\x00\x04", "no such symbol"),
        (b"\x02\x00\x00\x02\x00\x00!", "left over"),
    ],
)
def test_a_wrong_row_has_a_reason_and_fails_no_other(wrong: bytes, reason: str):
    good = written(ORDER, ROW)
    read = Avro(ORDER).decode(pa.array([good, wrong, good]))
    assert read.mask.to_pylist() == [False, True, False]
    assert reason in read.reasons[1].as_py()
    assert read.values.to_pylist() == [ROW | {"tags": [("x", 0.5)]}, None, ROW | {"tags": [("x", 0.5)]}]


def test_slices_and_empty_columns_are_read():
    column = pa.array([b"junk", written(ORDER, ROW), b"junk"])
    assert Avro(ORDER).decode(column[1:2]).failed == 0
    assert len(Avro(ORDER).decode(pa.array([], pa.binary())).values) == 0


def test_a_value_that_the_schema_has_no_place_for_is_named_by_its_row():
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    with pytest.raises(Undecodable, match="row 1 has no Avro"):
        Avro(schema).encode(pa.array([{"a": 1}, {"a": None}]))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "not JSON"),
        ('{"type":"record","name":"A","fields":[{"name":"a","type":"nosuch"}]}', "not an Avro schema"),
        ('{"type":"record","name":"A","fields":[{"name":"a","type":["null","A"]}]}', "holds itself"),
    ],
)
def test_a_wrong_schema_says_what_is_wrong(schema: str, said: str):
    with pytest.raises(SchemaError, match=said):
        Avro(schema)


def test_types_of_another_text_may_be_named():
    schema = {"type": "record", "name": "Box", "fields": [{"name": "item", "type": "Item"}]}
    form = Avro(json.dumps(schema), references={"Item": json.dumps(ITEM)})
    assert form.decode(pa.array([b"\x02a\x02"])).values.to_pylist() == [{"item": {"sku": "a", "count": 1}}]
    assert pickle.loads(pickle.dumps(form)).type == form.type


@given(columns())
@settings(max_examples=80, deadline=None)
def test_columns_come_back_and_fastavro_reads_the_same(column: pa.Array):
    schema = avro_schema(column.type)
    form = Avro(schema)
    data = form.encode(column)
    read = form.decode(data)
    assert read.failed == 0
    assert read.values.to_pylist() == column.to_pylist()
    parsed = fastavro.parse_schema(schema)
    for one in data.drop_null().to_pylist():
        source = io.BytesIO(one)
        fastavro.schemaless_reader(source, parsed, None)
        assert source.tell() == len(one)


@given(st.lists(st.binary(max_size=24) | st.just(written(ORDER, ROW)), max_size=6), st.data())
@settings(max_examples=200, deadline=None)
def test_whatever_bytes_come_rows_are_read_as_if_they_were_alone(rows: list[bytes], data: st.DataObject):
    good = bytearray(written(ORDER, ROW))
    good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    form = Avro(ORDER)
    together = form.decode(pa.array([*rows, bytes(good)], pa.binary()))
    for at, one in enumerate([*rows, bytes(good)]):
        alone = form.decode(pa.array([one], pa.binary()))
        assert together.values[at].as_py() == alone.values[0].as_py() or str(alone.values[0]).count("nan")
        assert together.reasons[at] == alone.reasons[0]
        if alone.failed == 0:
            judged = fastavro.schemaless_reader(io.BytesIO(one), fastavro.parse_schema(ORDER), None)
            assert str(judged | {"tags": list(judged["tags"].items())}) == str(alone.values[0].as_py()) or len(
                judged["tags"]
            ) < len(alone.values[0].as_py()["tags"])
