"""Keys and values as text."""

from __future__ import annotations

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.tables.key_formats import KEY_FORMATS, BadKey, key_format, prefix_of, shown
from penstock.tables.value_formats import BYTES, JSON, TEXT, content_type, shown_value, value_format


@pytest.mark.parametrize(
    ("form", "text", "key"),
    [
        ("utf8", "zoë", "zoë".encode()),
        ("utf8", "", b""),
        ("base64", "_-8", b"\xff\xef"),
        ("base64", "AA==", b"\x00"),
        ("int64", "-2", b"\xff" * 7 + b"\xfe"),
        ("int32", "258", b"\x00\x00\x01\x02"),
        ("windowed:utf8", "a@b@1000", b"a@b" + struct.pack(">q", 1000)),
        ("windowed:int64", "7@0", struct.pack(">qq", 7, 0)),
        ("session:utf8", "a@b-c@10-30", b"a@b-c" + struct.pack(">qq", 30, 10)),
        ("session:int32", "-7@0-5", struct.pack(">iqq", -7, 5, 0)),
    ],
)
def test_a_key_is_read_from_its_text(form, text, key):
    assert key_format(form).parse(text) == key


@pytest.mark.parametrize("form", sorted(KEY_FORMATS))
@given(st.binary(max_size=24))
def test_what_is_shown_can_be_asked_for(form, key):
    text, name = shown(key_format(form), key)
    assert key_format(name).parse(text) == key


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("base64", "a b"),
        ("base64", "a"),
        ("base64", "+/+/"),
        ("int64", "seven"),
        ("int64", str(2**63)),
        ("int32", str(2**31)),
        ("windowed:utf8", "alice"),
        ("windowed:utf8", "alice@-1"),
        ("windowed:utf8", "alice@"),
        ("session:utf8", "alice@10"),
        ("session:utf8", "alice@10-"),
        ("session:utf8", f"alice@10-{2**63}"),
        ("utf8", "\ud800"),
    ],
)
def test_what_is_no_key_is_refused_by_its_text(form, text):
    with pytest.raises(BadKey):
        key_format(form).parse(text)


def test_an_unknown_format_is_refused_with_those_there_are():
    with pytest.raises(BadKey, match="utf8"):
        key_format("utf16")
    with pytest.raises(ValueError, match="base64"):
        value_format("xml")


@pytest.mark.parametrize("bits", [32, 64])
@given(st.data())
def test_a_range_of_numbers_is_a_range_of_numbers(bits, data):
    numbers = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    small = st.integers(-3, 3)
    start, end = (data.draw(st.none() | small | numbers) for _ in range(2))
    form = key_format(f"int{bits}")
    spans = form.spans(None if start is None else str(start), None if end is None else str(end))
    number = data.draw(small | numbers)
    key = form.parse(str(number))
    found = [at for at, (first, last) in enumerate(spans) if key >= first and (last is None or key < last)]
    assert len(found) == int((start is None or number >= start) and (end is None or number < end))


def test_negative_numbers_come_first():
    negative, others = key_format("int64").spans(None, None)
    assert negative == (key_format("int64").parse(str(-(2**63))), None)
    assert others == (b"", negative[0])


def test_a_windowed_key_s_prefix_is_the_key_and_numbers_have_none():
    assert prefix_of(key_format("windowed:utf8"), "alice") == b"alice"
    assert prefix_of(key_format("session:utf8"), "alice") == b"alice"
    with pytest.raises(BadKey, match="from and to"):
        prefix_of(key_format("int64"), "1")


@pytest.mark.parametrize(
    ("form", "value", "shown_as", "kind"),
    [
        ("auto", b'{"a": 1}', {"a": 1}, JSON),
        ("auto", b"12345678901234567890123", 12345678901234567890123, JSON),
        ("auto", b"hello", "aGVsbG8=", BYTES),
        ("auto", b"", "", BYTES),
        ("auto", b"\xff", "/w==", BYTES),
        ("json", b"{", "ew==", BYTES),
        ("utf8", b'{"a": 1}', '{"a": 1}', TEXT),
        ("utf8", b"\xff", "/w==", BYTES),
        ("base64", b"1", "MQ==", BYTES),
        ("int64", struct.pack(">q", -(2**63)), -(2**63), JSON),
        ("int32", struct.pack(">i", 42), 42, JSON),
        ("int32", struct.pack(">q", 42), "AAAAAAAAACo=", BYTES),
        ("float64", struct.pack(">d", 0.1), 0.1, JSON),
        ("float64", struct.pack(">d", 1e300), 1e300, JSON),
        ("float64", struct.pack(">d", float("nan")), "f/gAAAAAAAA=", BYTES),
    ],
)
def test_a_value_in_an_answer(form, value, shown_as, kind):
    found, shown_kind = shown_value(value_format(form), value)
    assert (msgspec.json.decode(msgspec.json.encode(found)), shown_kind) == (shown_as, kind)


def test_the_bytes_of_a_number_are_not_json():
    assert content_type("int64", b"12345678") == BYTES
    assert content_type("auto", b"12345678") == JSON


def test_a_number_keeps_its_digits():
    found, _ = shown_value("auto", b"1.00000000000000000001")
    assert msgspec.json.encode({"value": found}) == b'{"value":1.00000000000000000001}'
