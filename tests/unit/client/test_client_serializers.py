"""Objects to bytes and back."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from penstock.client import Bytes, Integer, Json, Text, Typed


@dataclass
class Order:
    id: int
    at: datetime
    tags: list[str]


def test_typed_json_comes_back_as_the_dataclass():
    order = Order(1, datetime(2026, 1, 1, tzinfo=UTC), ["a"])
    codec = Typed(Order)
    assert codec.deserialize(codec.serialize(order)) == order


def test_typed_json_refuses_what_does_not_fit():
    codec = Typed(Order)
    with pytest.raises(Exception, match="id"):
        codec.deserialize(b'{"id": "one", "at": "2026-01-01T00:00:00Z", "tags": []}')
    with pytest.raises(Exception, match="missing required field"):
        codec.serialize({"id": 1})


def test_typed_json_takes_generic_types():
    codec = Typed(dict[str, int])
    assert codec.deserialize(codec.serialize({"a": 1})) == {"a": 1}
    with pytest.raises(Exception, match="int"):
        codec.serialize({"a": "b"})


def test_json_writes_dates_and_dataclasses():
    assert Json(sort_keys=True).serialize({"b": 1, "a": datetime(2026, 1, 1, tzinfo=UTC)}) == (
        b'{"a":"2026-01-01T00:00:00Z","b":1}'
    )


def test_text_in_another_encoding():
    codec = Text("latin-1")
    assert codec.serialize("é") == b"\xe9"
    assert codec.deserialize(b"\xe9") == "é"
    with pytest.raises(TypeError):
        codec.serialize(b"bytes")


def test_bytes_take_text_and_nothing_else():
    assert Bytes().serialize("é") == "é".encode()
    assert Bytes().serialize(memoryview(b"ab")) == b"ab"
    with pytest.raises(TypeError, match="Json"):
        Bytes().serialize({"a": 1})


def test_integers_are_javas():
    assert Integer().serialize(-2) == b"\xff" * 7 + b"\xfe"
    assert Integer(4).deserialize(b"\x00\x00\x01\x00") == 256
    with pytest.raises(ValueError, match="3 bytes"):
        Integer(4).deserialize(b"abc")
