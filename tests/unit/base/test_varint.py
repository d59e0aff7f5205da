from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.varint import read_uvarint, read_varint, read_varlong, varint_size, write_uvarint, write_varint


@given(st.integers(0, 2**32 - 1))
def test_unsigned_numbers_come_back(number: int) -> None:
    out = bytearray(b"before")
    write_uvarint(out, number)
    assert read_uvarint(out + b"after", 6) == (number, len(out))


@given(st.integers(-(2**31), 2**31 - 1))
def test_signed_numbers_come_back_and_take_the_announced_size(number: int) -> None:
    out = bytearray()
    write_varint(out, number)
    assert read_varint(out, 0) == (number, varint_size(number))


@given(st.integers(-(2**63), 2**63 - 1))
def test_long_numbers_come_back(number: int) -> None:
    out = bytearray()
    write_varint(out, number)
    assert read_varlong(out, 0) == (number, len(out))


@pytest.mark.parametrize(("number", "data"), [(0, b"\0"), (-1, b"\1"), (1, b"\2"), (-64, b"\x7f"), (64, b"\x80\x01")])
def test_small_numbers_of_either_sign_are_short(number: int, data: bytes) -> None:
    out = bytearray()
    write_varint(out, number)
    assert out == data


def test_a_varint_that_does_not_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="more than 5 bytes"):
        read_varint(b"\xff" * 10, 0)
    with pytest.raises(IndexError):
        read_varint(b"\xff\xff", 0)
