"""Protobuf by its .proto text: columns, rows, and what is wrong with a text."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from google.protobuf import struct_pb2, timestamp_pb2, wrappers_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.protobuf_format import Protobuf, ProtobufSerde
from penstock.schemas.protobuf_schema import by_indexes, indexes_of

ORDER = """
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";

// An order of a shop.
message Order {
  reserved 90 to 95;
  int64 id = 1;
  optional string note = 2 [deprecated = true];
  repeated Item items = 3;
  map<string, int32> counts = 4;
  oneof paid_with {
    string card = 5;
    Item goods = 6;
  }
  State state = 7;
  google.protobuf.Timestamp at = 8;
  google.protobuf.Duration took = 9;
  google.protobuf.Int64Value points = 10;
  google.protobuf.Struct more = 11;
  uint64 big = 12;
  repeated sint32 steps = 13;
  bytes raw = 14;
  map<int64, Item> by_place = 15;
  repeated State states = 16;
  enum State { OPEN = 0; SHUT = 1; }
  message Item { string sku = 1; double price = 2; Inner inner = 3; message Inner { bool yes = 1; } }
}
message Other { fixed32 a = 1; float b = 2; }
"""
EMPTY = {
    "id": 0, "note": None, "items": [], "counts": [], "card": None, "goods": None, "state": "OPEN", "at": None,
    "took": None, "points": None, "more": None, "big": Decimal(0), "steps": [], "raw": b"", "by_place": [],
    "states": [],
}  # fmt: skip
ITEM = {"sku": "a", "price": 1.5, "inner": {"yes": True}}
FULL = EMPTY | {
    "id": -1,
    "note": "",
    "items": [ITEM, {"sku": "", "price": 0.0, "inner": None}],
    "counts": [("x", 1), ("y", -1)],
    "goods": ITEM,
    "state": "SHUT",
    "at": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    "took": timedelta(seconds=-1.5),
    "points": 0,
    "more": '{"a": [1.0, null]}',
    "big": Decimal(2**64 - 1),
    "steps": [-1, 0, 1],
    "raw": b"\xff",
    "by_place": [(3, ITEM)],
    "states": ["SHUT", "7"],
}


def test_messages_come_back_with_all_they_hold():
    form = Protobuf(ORDER)
    read = form.decode(form.encode(pa.array([FULL, None, EMPTY], form.type)))
    assert read.failed == 0
    read.values.validate(full=True)
    assert read.values.to_pylist() == [FULL, None, EMPTY]


def test_no_bytes_are_a_message_with_nothing_in_it():
    assert Protobuf(ORDER).decode(pa.array([b""])).values.to_pylist() == [EMPTY]


def test_a_wrong_row_has_a_reason_and_fails_no_other():
    read = Protobuf(ORDER).decode(pa.array([b"\x08\x01", b"\xff", b"\x12\x01\xff", b"\x08\x02"]))
    assert read.reasons.to_pylist() == [None, *["not Protobuf of shop.v1.Order"] * 2, None]
    assert [one and one["id"] for one in read.values.to_pylist()] == [1, None, None, 2]


def test_fields_of_a_later_version_are_passed_over():
    later = Protobuf('syntax = "proto3"; message Other { fixed32 a = 1; string c = 9; }')
    data = later.encode(pa.array([{"a": 5, "c": "new"}]))
    assert Protobuf(ORDER, "Other").decode(data).values.to_pylist() == [{"a": 5, "b": 0.0}]


@pytest.mark.parametrize("name", ["Order.Item", "shop.v1.Order.Item"])
def test_a_message_is_found_by_its_name(name: str):
    form = Protobuf(ORDER, name)
    assert form.descriptor.full_name == "shop.v1.Order.Item"
    assert form.indexes == (0, 0)
    assert by_indexes(form.descriptor, (0, 0, 0)).full_name == "shop.v1.Order.Item.Inner"
    assert indexes_of(by_indexes(form.descriptor, (1,))) == (1,)


def test_bytes_are_those_of_protobufs_own_classes():
    text = """
    syntax = "proto3";
    message T { int64 seconds = 1; int32 nanos = 2; }
    message V { oneof kind { int32 null_value = 1; double number_value = 2; string string_value = 3; } }
    message W { repeated double xs = 1; }
    """
    moment = timestamp_pb2.Timestamp(seconds=-5, nanos=7)
    assert Protobuf(text).decode(pa.array([moment.SerializeToString()])).values.to_pylist() == [
        {"seconds": -5, "nanos": 7}
    ]
    value = struct_pb2.Value(string_value="é").SerializeToString()
    assert ProtobufSerde(text, "V").decode(value) == {"null_value": None, "number_value": None, "string_value": "é"}
    assert ProtobufSerde(text, "V").encode({"string_value": "é"}) == value
    assert ProtobufSerde(text, "W").decode(wrappers_pb2.DoubleValue(value=2).SerializeToString()) == {"xs": [2.0]}


def test_proto2_has_presence_required_fields_and_groups():
    text = """
    syntax = "proto2";
    message Old {
      required int32 a = 1;
      optional string b = 2 [default = "x"];
      repeated group Part = 3 { optional int32 n = 1; }
    }
    """
    form = Protobuf(text)
    data = form.encode(pa.array([{"a": 1, "b": None, "part": [{"n": 2}]}], form.type))
    assert form.decode(data).values.to_pylist() == [{"a": 1, "b": None, "part": [{"n": 2}]}]
    with pytest.raises(Undecodable, match="row 0 has no Protobuf of Old"):
        form.encode(pa.array([{"b": "no a"}]))


def test_imports_come_from_the_references():
    text = 'syntax = "proto3"; import "money.proto"; message Bill { bank.Money sum = 1; }'
    money = 'syntax = "proto3"; package bank; message Money { int64 cents = 1; }'
    form = Protobuf(text, imports={"money.proto": money})
    assert form.decode(pa.array([b"\x0a\x02\x08\x05"])).values.to_pylist() == [{"sum": {"cents": 5}}]
    assert pickle.loads(pickle.dumps(form)).type == form.type


@pytest.mark.parametrize(
    ("text", "message", "said"),
    [
        ('syntax = "proto3";\nmessage A { int32 a }', None, "wrong in line 2"),
        ('syntax = "proto3"; message A { B b = 1; }', None, "couldn't resolve name 'B'"),
        ('syntax = "proto3"; import "b.proto"; message A { int32 a = 1; }', None, "import 'b.proto' is not there"),
        ('syntax = "proto3"; message A { repeated A inner = 1; }', None, "the message A holds itself"),
        ('syntax = "proto3"; message A { int32 a = 1; }', "B", "no message 'B'; it has A"),
        ('syntax = "proto3"; enum E { X = 0; }', None, "has no message"),
    ],
)
def test_a_wrong_text_says_what_is_wrong(text: str, message: str | None, said: str):
    with pytest.raises(SchemaError, match=said):
        Protobuf(text, message)


ITEMS = st.fixed_dictionaries(
    {"sku": st.text(max_size=4), "price": st.floats(allow_nan=False), "inner": st.none() | st.just({"yes": False})}
)
ORDERS = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "note": st.none() | st.text(max_size=4),
        "items": st.lists(ITEMS, max_size=3),
        "counts": st.dictionaries(st.text(max_size=2), st.integers(-9, 9), max_size=3).map(lambda a: sorted(a.items())),
        "big": st.integers(0, 2**64 - 1).map(Decimal),
        "steps": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
        "raw": st.binary(max_size=4),
        "at": st.none() | st.datetimes(datetime(1, 1, 2), datetime(9999, 1, 1)).map(lambda a: a.replace(tzinfo=UTC)),
    }
)  # fmt: skip
FORM = Protobuf(ORDER)


@given(st.lists(st.none() | ORDERS, max_size=5))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_again(rows: list[dict[str, object] | None]):
    whole = [None if one is None else EMPTY | one for one in rows]
    assert FORM.decode(FORM.encode(pa.array(whole, FORM.type))).values.to_pylist() == whole


@given(st.lists(st.binary(max_size=12), max_size=5))
@settings(max_examples=150, deadline=None)
def test_whatever_bytes_come_rows_are_read_as_if_they_were_alone(rows: list[bytes]):
    together = FORM.decode(pa.array(rows, pa.binary()))
    alone = [FORM.decode(pa.array([one], pa.binary())) for one in rows]
    assert [str(one) for one in together.values] == [str(one.values[0]) for one in alone]
    assert together.reasons.to_pylist() == [one.reasons[0].as_py() for one in alone]
