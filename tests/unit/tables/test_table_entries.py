"""Stored keys and values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.tables.entries import (
    HEAD,
    SHORT_KEY_BYTES_MAX,
    STORED_KEY_BYTES_MAX,
    ChecksumFailed,
    Entry,
    is_long,
    pack,
    prefix_end,
    stored_key,
    unpack,
)

KEYS = st.one_of(st.binary(max_size=20), st.binary(min_size=470, max_size=600))


@given(KEYS, st.binary(max_size=50), st.integers(-1, 2**62), st.integers(0, 2**31 - 1), st.integers(0, 2**62))
def test_what_is_packed_is_unpacked(key, value, timestamp_ms, partition, offset):
    packed = pack(key, HEAD.pack(timestamp_ms + 1, partition, offset), value)
    assert unpack(stored_key(key), packed) == Entry(key, value, timestamp_ms, partition, offset)


@given(KEYS, KEYS)
def test_stored_keys_sort_as_keys_do_but_for_long_ones_with_the_same_beginning(one, other):
    if one[:SHORT_KEY_BYTES_MAX] != other[:SHORT_KEY_BYTES_MAX] or not is_long(stored_key(one)):
        assert (stored_key(one) < stored_key(other)) == (one < other)


def test_the_longest_keys_that_are_kept_whole_and_the_shortest_that_are_not():
    longest = b"x" * SHORT_KEY_BYTES_MAX
    assert stored_key(longest) == b"k" + longest
    assert len(stored_key(longest + b"x")) == STORED_KEY_BYTES_MAX
    assert stored_key(longest + b"x") != stored_key(longest + b"y")
    assert stored_key(b"") == b"k"


@given(st.data())
def test_a_flipped_bit_is_noticed(data):
    packed = bytearray(pack(b"key", HEAD.pack(1, 2, 3), b"value"))
    at = data.draw(st.integers(0, len(packed) * 8 - 1))
    packed[at // 8] ^= 1 << at % 8
    with pytest.raises(ChecksumFailed):
        unpack(b"kkey", bytes(packed))


def test_a_stored_value_that_is_cut_off_is_noticed():
    with pytest.raises(ChecksumFailed):
        unpack(b"kkey", b"\0" * 10)


@given(st.binary(max_size=6), st.binary(max_size=6))
def test_the_end_of_a_prefix_parts_keys_that_begin_with_it_from_those_behind(prefix, key):
    end = prefix_end(prefix)
    inside = key >= prefix and (end is None or key < end)
    assert inside == key.startswith(prefix)
