from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import DecodeError
from penstock.protocol.codec import (
    Reader,
    write_ints,
    write_nullable_string,
    write_string,
    write_strings,
    write_tags,
    write_uuids,
)


@given(st.binary(max_size=300), st.booleans())
def test_text_of_any_bytes_comes_back_unchanged(raw: bytes, flexible: bool) -> None:
    out = bytearray()
    write_string(out, raw.decode("utf-8", "surrogateescape"), flexible)
    text = Reader(out).string(flexible)
    assert text.encode("utf-8", "surrogateescape") == raw


def test_two_different_invalid_texts_stay_different() -> None:
    first, second = (Reader(b"\0\x01" + byte).string(False) for byte in (b"\xff", b"\xfe"))
    assert first != second


@pytest.mark.parametrize("flexible", [False, True])
def test_null_and_empty_are_two_things(flexible: bool) -> None:
    out = bytearray()
    write_nullable_string(out, None, flexible)
    write_nullable_string(out, "", flexible)
    reader = Reader(out)
    assert [reader.nullable_string(flexible), reader.nullable_string(flexible)] == [None, ""]
    with pytest.raises(DecodeError, match="null where a string is required"):
        Reader(out).string(flexible)


@given(st.lists(st.integers(-(2**31), 2**31 - 1)), st.lists(st.text("ab", max_size=3)), st.booleans())
def test_arrays_come_back(numbers: list[int], texts: list[str], flexible: bool) -> None:
    ids = [bytes([number % 256] * 16) for number in numbers]
    out = bytearray()
    write_ints(out, "i", numbers, flexible)
    write_strings(out, texts, flexible)
    write_uuids(out, ids, flexible)
    reader = Reader(out)
    assert (reader.ints("i", 4, flexible), reader.strings(flexible), reader.uuids(flexible)) == (numbers, texts, ids)
    assert reader.at == len(out)


def test_a_string_longer_than_the_protocol_allows_is_refused() -> None:
    out = bytearray(b"\x81\x80\x02") + bytes(40_000)
    with pytest.raises(DecodeError, match="a string of 32768 bytes, the limit is 32767"):
        Reader(out).string(True)


def test_a_varint_that_does_not_end_is_refused() -> None:
    with pytest.raises(DecodeError, match="more than 5 bytes"):
        Reader(b"\xff" * 20).uvarint()
    with pytest.raises(DecodeError, match="more than 32 bits"):
        Reader(b"\xff\xff\xff\xff\x7f").uvarint()


def test_sixty_four_tagged_fields_are_read_and_one_more_is_not() -> None:
    for count in (64, 65):
        out = bytearray()
        write_tags(out, [(tag, bytearray(b"v")) for tag in range(count)])
        reader = Reader(out)
        if count == 64:
            reader.skip_tags()
            assert reader.at == len(out)
        else:
            with pytest.raises(DecodeError, match="65 tagged fields, the limit is 64"):
                reader.skip_tags()


def test_a_tagged_field_whose_value_is_shorter_than_declared_is_refused() -> None:
    reader = Reader(b"\x01\x00\x05" + bytes(5))
    with pytest.raises(DecodeError, match="tag 0 has 4 bytes, 5 declared"):
        for _ in reader.tags():
            reader.int32()


def test_record_bytes_are_a_view_and_not_a_copy() -> None:
    frame = bytearray(b"\x00\x00\x00\x03abc")
    view = Reader(frame).records(False)
    frame[4] = ord("x")
    assert view == b"xbc"
