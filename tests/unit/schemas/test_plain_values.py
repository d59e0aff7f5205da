"""Values without a schema, and a registry's frames around the others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.framed import Framed, FramedSerde
from penstock.schemas.plain import plain
from penstock.schemas.pylists import pylist
from penstock.schemas.serdes import TEXT
from penstock.schemas.specs import NAMES, Spec, format_of
from penstock.schemas.wire_format import (
    framed,
    framed_column,
    read_indexes,
    unframed,
    unframed_column,
    written_indexes,
)
from tests.unit.schemas.arrow_values import columns

# What confluent-kafka 2.16's own serializers wrote for a schema with the id 7.
AVRO_FRAME = bytes.fromhex("0000000007ac0202046869")
JSON_FRAME = bytes.fromhex("00000000077b226964223a3135307d")
INT64_VALUE_FRAME = bytes.fromhex("00000000070204089601")  # the third message of google/protobuf/wrappers.proto
DOUBLE_VALUE_FRAME = bytes.fromhex("00000000070009000000000000f83f")  # its first

AVRO = """{"type":"record","name":"Order","fields":[
  {"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}"""
JSON = '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'
WRAPPERS = """syntax = "proto3"; package google.protobuf;
message DoubleValue { double value = 1; }
message FloatValue { float value = 1; }
message Int64Value { int64 value = 1; }
"""


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("int", -2, b"\xff\xff\xff\xfe"),
        ("long", 2**62, b"\x40" + b"\0" * 7),
        ("double", -1.5, b"\xbf\xf8" + b"\0" * 6),
        ("text", "é", b"\xc3\xa9"),
        ("bytes", b"\x00\xff", b"\x00\xff"),
    ],
)
def test_values_are_those_of_kafkas_own_serializers(name: str, value: object, data: bytes):
    form = plain(name)
    written = form.encode(pa.array([value, None], form.type))
    assert written.to_pylist() == [data, None]
    read = form.decode(written)
    assert read.values.to_pylist() == [value, None]
    assert read.failed == 0


def test_what_has_another_size_or_no_utf8_is_null_with_a_reason():
    assert plain("int").decode(pa.array([b"123", b"\0\0\0\1", None])).reasons.to_pylist() == [
        "3 bytes where int has 4",
        None,
        None,
    ]
    read = plain("text").decode(pa.array([b"ok", b"a\xff"]))
    assert read.values.to_pylist() == ["ok", None]
    assert read.reasons.to_pylist() == [None, "not UTF-8: byte 1 is 0xff"]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_longs_come_back(values: list[int | None]):
    assert plain("long").decode(plain("long").encode(pa.array(values, pa.int64()))).values.to_pylist() == values


def test_a_format_that_is_not_there_names_those_that_are():
    with pytest.raises(SchemaError, match="no format is called 'xml'; there are bytes, text, json"):
        format_of(Spec("xml"))
    for name in NAMES[2:5]:
        with pytest.raises(SchemaError, match=f"the format {name} needs a schema"):
            format_of(Spec(name))


@pytest.mark.parametrize(
    ("frame", "spec", "value"),
    [
        (AVRO_FRAME, Spec("avro", AVRO), {"id": 150, "note": "hi"}),
        (JSON_FRAME, Spec("json", JSON), {"id": 150}),
        (INT64_VALUE_FRAME, Spec("protobuf", WRAPPERS, "Int64Value"), {"value": 150}),
        (DOUBLE_VALUE_FRAME, Spec("protobuf", WRAPPERS), {"value": 1.5}),
    ],
    ids=["avro", "json", "protobuf, third message", "protobuf, first message"],
)
def test_frames_are_those_of_confluents_serializers(frame: bytes, spec: Spec, value: object):
    form = Framed(spec, {7: spec}.__getitem__, schema_id=7)
    read = form.decode(pa.array([frame, None]))
    assert read.values.to_pylist() == [value, None]
    assert read.failed == 0
    assert form.encode(read.values).to_pylist() == [frame, None]


def test_what_is_not_framed_or_names_no_schema_is_a_wrong_row():
    def lookup(schema_id: int) -> Spec:
        if schema_id == 8:
            return Spec("json", JSON)
        if schema_id != 7:
            raise SchemaError("nobody knows it")
        return Spec("avro", AVRO)

    rows = [b'{"id":1}', b"", b"\0\0", AVRO_FRAME, framed(9, b"\x02\x00"), framed(8, b"{}"), framed(7, b"\xff")]
    read = Framed(Spec("avro", AVRO), lookup).decode(pa.array(rows))
    assert read.values.to_pylist() == [None, None, None, {"id": 150, "note": "hi"}, None, None, None]
    assert read.reasons.to_pylist() == [
        "not framed by a registry: it begins with 0x7b, not 0x00",
        "not framed by a registry: it begins with nothing, not 0x00",
        "not framed by a registry: 2 bytes are too few for an id",
        None,
        "schema 9: nobody knows it",
        "schema 8: it is of json, not avro",
        "not Avro of this schema: the value ends too early",
    ]


def test_rows_of_several_versions_are_read_as_the_readers():
    older = Spec("avro", '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}')
    specs = {1: older, 7: Spec("avro", AVRO)}
    read = Framed(specs[7], specs.__getitem__).decode(pa.array([framed(1, b"\x04"), AVRO_FRAME, framed(1, b"\x06")]))
    assert read.values.to_pylist() == [{"id": 2, "note": None}, {"id": 150, "note": "hi"}, {"id": 3, "note": None}]


def test_another_message_of_the_file_is_not_read_as_the_one_that_was_asked_for():
    spec = Spec("protobuf", WRAPPERS, "Int64Value")
    read = Framed(spec, {7: spec}.__getitem__).decode(pa.array([DOUBLE_VALUE_FRAME, INT64_VALUE_FRAME, framed(7, b"")]))
    assert read.values.to_pylist() == [None, {"value": 150}, None]
    assert read.reasons.to_pylist()[0] == "a google.protobuf.DoubleValue, not a google.protobuf.Int64Value"
    assert "end too early" in read.reasons.to_pylist()[2]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=5).map(tuple))
def test_message_indexes_come_back(indexes: tuple[int, ...]):
    assert read_indexes(written_indexes(indexes) + b"payload") == (indexes, len(written_indexes(indexes)))


@given(st.lists(st.none() | st.binary(max_size=9)))
def test_columns_and_single_values_are_framed_alike(rows: list[bytes | None]):
    column = framed_column(300, pa.array(rows, pa.binary()))
    assert column.to_pylist() == [None if one is None else framed(300, one) for one in rows]
    taken = unframed_column(pa.array(rows, pa.binary()))
    for at, one in enumerate(rows):
        if one is None:
            assert (taken.schema_ids[at].as_py(), taken.reasons[at].as_py()) == (None, None)
            continue
        try:
            expected = tuple(unframed(one))
        except Undecodable as error:
            assert taken.reasons[at].as_py() == error.reason
        else:
            assert (taken.schema_ids[at].as_py(), taken.payloads[at].as_py()) == expected


def test_a_serde_may_be_framed():
    serde = FramedSerde(5, {5: TEXT}.__getitem__)
    assert serde.encode("a") == b"\0\0\0\0\5a"
    assert serde.decode(b"\0\0\0\0\5a") == "a"
    assert serde.encode(None) is None
    with pytest.raises(Undecodable, match="not framed"):
        serde.decode(b"a")


@given(columns(), st.integers(0, 2), st.integers(0, 6))
@settings(deadline=None)
def test_python_values_of_a_column_are_those_of_arrow(column: pa.Array, begin: int, end: int):
    assert pylist(column) == column.to_pylist()
    assert pylist(column[begin:end]) == column[begin:end].to_pylist()
