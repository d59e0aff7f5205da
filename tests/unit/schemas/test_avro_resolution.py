"""What one Avro schema wrote, read by another: as fastavro resolves it."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from penstock.schemas.avro_format import Avro
from penstock.schemas.errors import SchemaError


def record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind} | more


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols)} | more


INNER = record(field("x", "int"), field("y", "string"), name="I")
INNER_WIDER = record(field("x", "long"), field("z", "string", default="none"), name="I")

CASES: dict[str, tuple[Any, Any, list[Any]]] = {
    "a field the writer lacked": (
        record(field("a", "int")),
        record(field("a", "int"), field("b", ["null", "string"], default=None), field("c", "int", default=7)),
        [{"a": 1}],
    ),
    "a field the reader dropped": (
        record(field("a", "string"), field("b", "int")),
        record(field("b", "int")),
        [{"a": "x", "b": 2}],
    ),
    "a field renamed": (record(field("a", "int")), record(field("b", "int", aliases=["a"])), [{"a": 5}]),
    "numbers that widen": (
        record(field("a", "int"), field("b", "long"), field("c", "float"), field("d", "int")),
        record(field("a", "long"), field("b", "double"), field("c", "double"), field("d", "float")),
        [{"a": 1, "b": 2, "c": 0.5, "d": 3}],
    ),
    "text and bytes": (
        record(field("a", "string"), field("b", "bytes")),
        record(field("a", "bytes"), field("b", "string")),
        [{"a": "é", "b": b"x"}],
    ),
    "a field that became optional": (record(field("a", "int")), record(field("a", ["null", "long"])), [{"a": 1}]),
    "an optional one that became wider": (
        record(field("a", ["null", "int"])),
        record(field("a", ["null", "double"])),
        [{"a": 1}, {"a": None}],
    ),
    "records inside": (
        record(field("one", INNER), field("many", {"type": "array", "items": "I"})),
        record(field("one", INNER_WIDER), field("many", {"type": "array", "items": "I"})),
        [
            {"one": {"x": 1, "y": "a"}, "many": [{"x": 2, "y": "b"}, {"x": 3, "y": "c"}]},
            {"one": {"x": 0, "y": ""}, "many": []},
        ],
    ),
    "an enum with a default": (
        record(field("e", enum("A", "B", "C"))),
        record(field("e", enum("A", "Z", default="Z"))),
        [{"e": "A"}, {"e": "C"}],
    ),
    "defaults of every kind": (
        record(field("a", "int")),
        record(
            field("a", "int"),
            field("m", {"type": "map", "values": "int"}, default={}),
            field("l", {"type": "array", "items": "string"}, default=["x"]),
            field("r", INNER, default={"x": 1, "y": "q"}),
            field("e", enum("A", "B"), default="B"),
        ),
        [{"a": 1}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_resolution_is_fastavros(name: str):
    writer, reader, rows = CASES[name]
    written, expected = [], []
    for row in rows:
        target = io.BytesIO()
        fastavro.schemaless_writer(target, fastavro.parse_schema(writer), row)
        written.append(target.getvalue())
        judged = fastavro.schemaless_reader(
            io.BytesIO(target.getvalue()), fastavro.parse_schema(writer), fastavro.parse_schema(reader)
        )
        expected.append(judged | ({"m": list(judged["m"].items())} if "m" in judged else {}))
    read = Avro(reader, writer=writer).decode(pa.array([*written, None]))
    assert read.failed == 0
    read.values.validate(full=True)
    assert read.values.to_pylist() == [*expected, None]


def test_a_default_of_bytes_is_written_as_text_of_one_byte_a_character():
    writer, reader = record(field("a", "int")), record(field("b", "bytes", default="\u00ff\u0001"))
    assert Avro(reader, writer=writer).decode(pa.array([b"\x02"])).values.to_pylist() == [{"b": b"\xff\x01"}]


def test_a_null_that_the_reader_cannot_hold_is_a_wrong_row():
    writer, reader = record(field("a", ["null", "int"])), record(field("a", "int"))
    read = Avro(reader, writer=writer).decode(pa.array([b"\x02\x02", b"\x00", b"\x02\x04"]))
    assert read.values.to_pylist() == [{"a": 1}, None, {"a": 2}]
    assert read.mask.to_pylist() == [False, True, False]
    assert "requires a value" in read.reasons[1].as_py()


def test_a_symbol_that_the_reader_does_not_know_is_a_wrong_row_and_no_null():
    writer, reader = record(field("e", enum("A", "B"))), record(field("e", ["null", enum("A")]))
    read = Avro(reader, writer=writer).decode(pa.array([b"\x00", b"\x02"]))
    assert read.values.to_pylist() == [{"e": "A"}, None]
    assert "no such enum symbol" in read.reasons[1].as_py()


def test_bytes_that_are_no_text_are_a_wrong_row_for_a_reader_of_text():
    writer, reader = record(field("a", "bytes")), record(field("a", "string"))
    assert Avro(reader, writer=writer).decode(pa.array([b"\x02x", b"\x02\xff"])).mask.to_pylist() == [False, True]


def test_a_long_that_a_double_cannot_hold_exactly_is_rounded_as_avro_says():
    writer, reader = "long", "double"
    data = Avro(writer).encode(pa.array([2**60 + 1, -5]))
    assert Avro(reader, writer=writer).decode(data).values.to_pylist() == [float(2**60), -5.0]


@pytest.mark.parametrize(
    ("writer", "reader", "said"),
    [
        (record(field("a", "int")), record(field("b", "int")), "value.b was not written"),
        (record(field("a", "string")), record(field("a", "int")), "value.a was written as string"),
        (record(field("a", "int")), record(field("a", ["null", "string", "boolean"])), "no branch"),
    ],
)
def test_schemas_that_cannot_meet_say_where(writer: Any, reader: Any, said: str):
    with pytest.raises(SchemaError, match=said):
        Avro(reader, writer=writer)
