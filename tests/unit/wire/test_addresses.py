"""Addresses as people write them."""

from __future__ import annotations

import pytest

from penstock.wire.addresses import parse


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("broker", [("broker", 9092)]),
        ("broker:9192, other:9292", [("broker", 9192), ("other", 9292)]),
        ("[::1]:9192,[::1]", [("::1", 9192), ("::1", 9092)]),
        ("PLAINTEXT://broker:9192,SSL://[::1]:9292", [("broker", 9192), ("::1", 9292)]),
    ],
)
def test_addresses_are_read(text: str, places: list[tuple[str, int]]):
    assert parse(text) == places


@pytest.mark.parametrize("text", [":9092", "broker:nine", "PLAINTEXT://:9092"])
def test_what_is_no_address_is_told_with_an_example(text: str):
    with pytest.raises(ValueError, match="localhost:9092"):
        parse(text)
