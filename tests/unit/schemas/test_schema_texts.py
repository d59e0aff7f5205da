"""JSON Schema and Spark's DDL to Arrow."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from penstock.schemas import ddl, json_schema
from penstock.schemas.errors import SchemaError
from penstock.schemas.json_format import Json
from penstock.schemas.json_schema import RAW
from tests.unit.schemas.arrow_values import structs

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("id BIGINT NOT NULL, n int COMMENT 'many'", pa.struct([pa.field("id", pa.int64(), False), ("n", pa.int32())])),
        ("a TINYINT, b SHORT, c REAL", pa.struct([("a", pa.int8()), ("b", pa.int16()), ("c", pa.float32())])),
        ("a TIMESTAMP, l TIMESTAMP_NTZ, d DATE",
         pa.struct([("a", UTC), ("l", pa.timestamp("us")), ("d", pa.date32())])),
        ("m MAP<STRING, ARRAY<DECIMAL(9, 2)>>",
         pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.decimal128(9, 2))))])),
        ("s STRUCT<x: INT, `y z`: VARCHAR(5) NOT NULL>",
         pa.struct([("s", pa.struct([("x", pa.int32()), pa.field("y z", pa.string(), False)]))])),
        ("ARRAY<INT>", pa.list_(pa.int32())),
        ("bigint", pa.int64()),
        ("d DECIMAL", pa.struct([("d", pa.decimal128(10, 0))])),
    ],
)  # fmt: skip
def test_ddl_is_read_as_spark_reads_it(text: str, kind: pa.DataType):
    assert ddl.arrow_type(text) == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id BIGINTEGER", "no type 'biginteger'"),
        ("id", "no type 'id'"),
        ("id INT name STRING", "unexpected 'name' where ','"),
        ("a ARRAY<INT", "'>' is missing at the end"),
        ("a INT, a STRING", "'a' is named twice"),
        ("d DECIMAL(50, 2)", "1 to 38 digits"),
        ("a ? INT", "unexpected '\\? INT'"),
    ],
)
def test_wrong_ddl_says_where(text: str, said: str):
    with pytest.raises(SchemaError, match=said):
        ddl.arrow_type(text)


@given(structs())
def test_ddl_of_a_type_is_read_as_the_same_columns(kind: pa.DataType):
    again = ddl.arrow_type(ddl.ddl_of(kind))
    assert ddl.ddl_of(again) == ddl.ddl_of(kind)
    assert [one.name for one in again] == [one.name for one in kind]


SHOP: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["id", "at"],
    "properties": {
        "id": {"type": "integer"},
        "small": {"type": "integer", "format": "int32"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": ["null", "string"], "format": "date"},
        "raw": {"type": "string", "contentEncoding": "base64"},
        "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "either": {"type": ["integer", "number"]},
        "item": {"$ref": "#/definitions/Item"},
        "items": {"type": "array", "items": {"$ref": "#/definitions/Item"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "state": {"enum": ["open", "shut"]},
        "both": {"allOf": [{"$ref": "#/definitions/Item"}, {"properties": {"more": {"type": "boolean"}}}]},
        "any": {},
        "mixed": {"type": ["string", "integer"]},
    },
    "definitions": {"Item": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}}}},
}
ITEM = pa.struct([pa.field("sku", pa.string(), False)])


def test_a_json_schema_has_columns():
    kind = json_schema.arrow_type(json.dumps(SHOP))
    assert kind == pa.struct(
        [
            pa.field("id", pa.int64(), False),
            ("small", pa.int32()),
            pa.field("at", UTC, False),
            ("day", pa.date32()),
            ("raw", pa.binary()),
            ("price", pa.float64()),
            ("either", pa.float64()),
            ("item", ITEM),
            ("items", pa.list_(ITEM)),
            ("counts", pa.map_(pa.string(), pa.int64())),
            ("state", pa.string()),
            ("both", pa.struct([pa.field("sku", pa.string(), False), ("more", pa.bool_())])),
            ("any", pa.string()),
            ("mixed", pa.string()),
        ]
    )
    assert [one.name for one in kind if one.metadata == RAW] == ["any", "mixed"]


def test_what_has_no_type_is_kept_as_json_and_written_as_it_was():
    form = Json(json_schema.arrow_type({"properties": {"id": {"type": "integer"}, "any": {}}}))
    rows = [b'{"id":1,"any":{"a":[1,null]}}', b'{"id":2,"any":"text"}', b'{"id":3,"any":null}']
    read = form.decode(pa.array(rows))
    assert [one["any"] for one in read.values.to_pylist()] == ['{"a":[1,null]}', '"text"', None]
    assert form.encode(read.values).to_pylist() == rows


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "is an object"),
        ('{"type": "objekt"}', "none of JSON Schema"),
        ('{"properties": {"a": {"$ref": "#/definitions/B"}}}', "nothing at '#/definitions/B'"),
        ('{"properties": {"a": {"$ref": "other.json"}}}', "leaves the schema"),
        ('{"properties": {"a": {"$ref": "#"}}}', "holds itself"),
        ('{"allOf": [{"$ref": "#"}]}', "holds itself"),
        ("{}", "names no columns"),
    ],
)
def test_a_wrong_json_schema_says_what_is_wrong(schema: str, said: str):
    with pytest.raises(SchemaError, match=said):
        json_schema.arrow_type(schema)
