"""What the source's options make of keys and values."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from penstock.pipeline.formats import formats_of, sink_formats_of
from penstock.schemas.errors import SchemaError, Undecodable

BASE = StructType(
    [StructField("key", BinaryType()), StructField("value", BinaryType()), StructField("topic", StringType())]
)
JSON = {"valueFormat": "json", "valueSchema": "id BIGINT NOT NULL, price DOUBLE"}
BATCH = pa.record_batch(
    {
        "key": pa.array([b"\0\0\0\1", None, b"??", b"\0\0\0\4"]),
        "value": pa.array([b'{"id":1,"price":2}', b"null", b'{"id":3}', b'{"price":0}']),
        "topic": ["orders"] * 4,
        "partition": pa.array([2] * 4, pa.int32()),
        "offset": [10, 11, 12, 13],
    }
)


def test_without_options_nothing_changes():
    formats = formats_of({})
    assert formats.is_plain
    assert formats.spark_schema(BASE) == BASE
    assert formats.apply(BATCH).equals(BATCH)


def test_the_columns_get_the_types_of_their_schemas():
    formats = formats_of(JSON | {"KEYFORMAT": "int", "errorColumn": "_error"})
    assert not formats.is_plain
    assert formats.spark_schema(BASE) == StructType(
        [
            StructField("key", IntegerType()),
            StructField(
                "value", StructType([StructField("id", LongType(), False), StructField("price", DoubleType())])
            ),
            StructField("topic", StringType()),
            StructField("_error", StringType()),
        ]
    )


def test_permissive_reads_null_and_says_why_where_asked():
    read = formats_of(JSON | {"keyFormat": "int", "errorColumn": "_error"}).apply(BATCH)
    assert read.column("key").to_pylist() == [1, None, None, 4]
    assert read.column("value").to_pylist() == [{"id": 1, "price": 2.0}, None, {"id": 3, "price": None}, None]
    assert read.column("_error").to_pylist() == [
        None,
        None,
        "key: 2 bytes where int has 4",
        "value: id: a value was expected, not null",
    ]
    assert formats_of(JSON).apply(BATCH).schema.names == BATCH.schema.names


def test_both_sides_may_be_wrong_in_one_row():
    batch = pa.record_batch({"key": pa.array([b"?"]), "value": pa.array([b"?"])})
    read = formats_of(JSON | {"keyFormat": "long", "errorColumn": "why"}).apply(batch)
    assert read.column("why").to_pylist() == [
        "key: 1 bytes where long has 8; value: not JSON: invalid character (byte 0)"
    ]


def test_failfast_names_the_record():
    with pytest.raises(Undecodable, match="the value of the record at offset 13 of orders-2 is not json: id: a value"):
        formats_of(JSON | {"mode": "failfast"}).apply(BATCH)
    with pytest.raises(Undecodable, match="row 3 of a batch"):
        formats_of(JSON | {"mode": "failfast"}).apply(BATCH.select(["value"]))


def test_dropmalformed_leaves_out_what_is_wrong_on_either_side():
    read = formats_of(JSON | {"keyFormat": "int", "mode": "DROPMALFORMED"}).apply(BATCH)
    assert read.column("offset").to_pylist() == [10, 11]


def test_columns_that_were_not_asked_for_are_not_missed():
    read = formats_of(JSON | {"keyFormat": "int", "errorColumn": "_error"}).apply(BATCH.select(["key", "offset"]))
    assert read.schema.names == ["key", "offset", "_error"]
    assert read.column("key").to_pylist() == [1, None, None, 4]


def test_an_empty_batch_has_the_types_all_the_same():
    read = formats_of(JSON | {"errorColumn": "_error"}).apply(BATCH.slice(0, 0))
    assert pa.types.is_struct(read.schema.field("value").type)
    assert read.num_rows == 0


def test_formats_go_to_other_processes():
    formats = formats_of(JSON)
    formats.apply(BATCH)
    assert pickle.loads(pickle.dumps(formats)).apply(BATCH).equals(formats.apply(BATCH))


@pytest.mark.parametrize(
    ("schema", "value", "row"),
    [
        ({"valueFormat": "avro", "valueSchema": '{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}'},
         b"\x02", {"a": 1}),
        ({"valueFormat": "protobuf", "valueSchema": 'syntax = "proto3"; message X {} message A { int32 a = 1; }',
          "messageName": "A"}, b"\x08\x01", {"a": 1}),
        ({"valueFormat": "json", "valueSchema": '{"properties":{"a":{"type":"integer"}}}'}, b'{"a":1}', {"a": 1}),
        ({"valueFormat": "text"}, b"a", "a"),
        ({"valueFormat": "double"}, b"\x3f\xf0" + b"\0" * 6, 1.0),
    ],
)  # fmt: skip
def test_every_format_is_there(schema: dict[str, str], value: bytes, row: object):
    batch = pa.record_batch({"value": pa.array([value])})
    assert formats_of(schema).apply(batch).column("value").to_pylist() == [row]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"valueFormat": "xml"}, "valueFormat is 'xml'; it is one of bytes, text, json"),
        ({"keyFormat": "json"}, "keyFormat is json: give keySchema or schema.registry.url"),
        ({"schema.registry.url": "http://h:1"}, "schema.registry.url is given, but neither keys nor values have"),
        ({"messageName": "A", "valueFormat": "text"}, "messageName is given, but neither keys nor values have"),
        ({"valueFormat": "text", "valueSchema": "a INT"}, "valueSchema is given, but valueFormat is text"),
        ({"mode": "LENIENT"}, "mode is 'LENIENT'; it is one of PERMISSIVE"),
        ({"mode": "FAILFAST", "errorColumn": "e"}, "errorColumn has nothing to say"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, str], said: str):
    with pytest.raises(SchemaError, match=said):
        formats_of(options)


def test_a_sink_writes_columns_as_bytes():
    rows = pa.record_batch(
        {"key": pa.array([1, None]), "value": pa.array([{"id": 1, "tags": ["a"]}, None]), "topic": ["t", "t"]}
    )
    for name in ("json", "avro"):
        options = {"keyFormat": "long", "valueFormat": name}
        written = sink_formats_of(options, rows.schema).encode(rows)
        assert written.schema.field("value").type == pa.binary()
        assert written.column("key").to_pylist() == [b"\0" * 7 + b"\1", None]
        assert written.column("value").to_pylist()[1] is None
    assert sink_formats_of({"valueFormat": "json"}, rows.schema).encode(rows).column("value").to_pylist() == [
        b'{"id":1,"tags":["a"]}',
        None,
    ]


def test_a_sink_says_which_value_has_no_bytes():
    schema = '{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}'
    rows = pa.record_batch({"value": pa.array([{"a": 2**40}])})
    with pytest.raises(Undecodable, match="a value cannot be written as avro: row 0"):
        sink_formats_of({"valueFormat": "avro", "valueSchema": schema}, rows.schema).encode(rows)


def test_the_column_of_errors_has_a_name_of_its_own():
    with pytest.raises(SchemaError, match="errorColumn is 'value', which every record has"):
        formats_of(JSON | {"errorColumn": "value"})
