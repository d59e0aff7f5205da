"""Dataclasses and their kin: as columns, as Avro, and as rows."""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pyarrow as pa
import pytest

from penstock.schemas import serdes
from penstock.schemas.avro_format import Avro, AvroSerde
from penstock.schemas.avro_schema import avro_schema
from penstock.schemas.dataclasses import arrow_schema, arrow_type, columns_of, objects_of
from penstock.schemas.errors import SchemaError, Undecodable
from penstock.schemas.json_format import Json
from penstock.schemas.serdes import JsonSerde, Serde, serde_of


class State(Enum):
    OPEN = "open"
    SHUT = "shut"


@dataclass
class Item:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: int
    small: Annotated[int, pa.int32()]
    price: float
    at: datetime
    day: date
    sum: Decimal
    raw: bytes
    key: uuid.UUID
    state: State
    level: Literal["low", "high"]
    first: Item | None
    items: list[Item]
    by_name: dict[str, Item]
    more: Any
    note: str | None = None
    tags: list[str] = field(default_factory=list)


ORDER = Order(
    1, 2, 0.5, datetime(2024, 1, 1, tzinfo=UTC), date(2024, 1, 2), Decimal("1.5"), b"x", uuid.UUID(int=7), State.SHUT,
    "low", None, [Item("a"), Item("b", 2)], {"c": Item("c")}, {"any": [1]}, tags=["t"],
)  # fmt: skip


class Seen(TypedDict):
    user: str
    times: NotRequired[int]


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Renamed(msgspec.Struct, rename="camel"):
    user_id: int
    full_name: str | None = None


@dataclass
class Loop:
    inner: Loop | None


def test_a_dataclass_has_columns():
    assert arrow_schema(Order).field("id") == pa.field("id", pa.int64(), False)
    assert arrow_schema(Order).field("first") == pa.field(
        "first", pa.struct([pa.field("sku", pa.string(), False), ("count", pa.int64())])
    )
    kinds = {one.name: str(one.type) for one in arrow_schema(Order)}
    assert kinds | {"items": "", "by_name": "", "first": ""} == {
        "id": "int64", "small": "int32", "price": "double", "at": "timestamp[us, tz=UTC]", "day": "date32[day]",
        "sum": "decimal128(38, 18)", "raw": "binary", "key": "string", "state": "string", "level": "string",
        "first": "", "items": "", "by_name": "", "more": "string", "note": "string", "tags": str(arrow_type(list[str])),
    }  # fmt: skip


def test_objects_become_columns_and_objects_again():
    column = columns_of([ORDER, None], Order)
    column.validate(full=True)
    assert objects_of(column, Order) == [ORDER, None]


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (Seen, [{"user": "a", "times": 2}, {"user": "b"}]),
        (Renamed, [Renamed(1, "x"), Renamed(2)]),
        (list[int], [[1, 2], []]),
        (dict[str, float], [{"a": 0.5}]),
        (int | None, [1, None]),
    ],
)
def test_its_kin_do_too(kind: Any, rows: list[Any]):
    assert objects_of(columns_of(rows, kind), kind) == rows


def test_names_are_those_of_json():
    assert arrow_schema(Renamed).names == ["userId", "fullName"]
    assert arrow_schema(Point).names == ["x", "y"]


def test_json_columns_and_json_rows_of_a_type_mean_the_same():
    data = JsonSerde(Order).encode(ORDER)
    read = Json(arrow_type(Order)).decode(pa.array([data]))
    assert read.reasons.to_pylist() == [None]
    assert objects_of(read.values, Order) == [ORDER]


def test_a_missing_field_takes_its_default_and_a_required_one_is_missed():
    read = Json(arrow_type(Item)).decode(pa.array([b'{"sku":"a"}', b'{"count":2}']))
    assert objects_of(read.values, Item) == [Item("a", 1), None]
    assert read.mask.to_pylist() == [False, True]


def test_avro_rows_and_avro_columns_of_a_type_mean_the_same():
    serde: AvroSerde[Item] = AvroSerde(kind=Item)
    data = serde.encode(Item("a", 3))
    assert serde.decode(data or b"") == Item("a", 3)
    assert Avro(avro_schema(arrow_schema(Item), "Item")).decode(pa.array([data])).values.to_pylist() == [
        {"sku": "a", "count": 3}
    ]
    with pytest.raises(Undecodable, match="not Avro"):
        serde.decode(b"\xff\xff")
    with pytest.raises(Undecodable, match="left over"):
        serde.decode((data or b"") + b"!")


@pytest.mark.parametrize(
    ("kind", "said"), [(int, "int has no fields"), (Loop, "Loop holds itself"), (dict[str, complex], "int has no|dict")]
)
def test_types_without_columns_are_refused(kind: Any, said: str):
    with pytest.raises(SchemaError, match=said):
        arrow_schema(kind)


@pytest.mark.parametrize(
    ("kind", "obj", "data"),
    [
        (str, "é", b"\xc3\xa9"),
        (bytes, b"\xff", b"\xff"),
        (int, -2, b"\xff" * 7 + b"\xfe"),
        (float, 1.5, b"\x3f\xf8" + b"\0" * 6),
        (serdes.INT, 1, b"\0\0\0\1"),
        (Item, Item("a", 2), b'{"sku":"a","count":2}'),
        (dict, {"a": [1]}, b'{"a":[1]}'),
        (Seen, {"user": "x"}, b'{"user":"x"}'),
    ],
)
def test_a_type_stands_for_its_serde(kind: Any, obj: Any, data: bytes):
    serde = pickle.loads(pickle.dumps(serde_of(kind)))
    assert isinstance(serde, Serde)
    assert serde.encode(obj) == data
    assert serde.decode(data) == obj
    assert serde.encode(None) is None


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        (str, b"a\xff", "not UTF-8: byte 1 is 0xff"),
        (int, b"123", "3 bytes where a long has 8"),
        (Item, b'{"count":1}', "not Item: Object missing required field `sku`"),
        (Item, b'{"sku":1}', "not Item: Expected `str`, got `int`"),
        (dict, b"{", "not JSON: Input data was truncated"),
    ],
)
def test_bytes_that_are_not_of_the_type_are_undecodable(kind: Any, data: bytes, reason: str):
    with pytest.raises(Undecodable, match="^" + reason) as caught:
        serde_of(kind).decode(data)
    assert pickle.loads(pickle.dumps(caught.value)).reason == caught.value.reason
