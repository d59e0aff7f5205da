"""Requests and responses against kio, which was generated from the same specifications by other hands.

Ours are encoded, read by kio, compared field by field, written by kio and compared byte by byte: every version.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import uuid
from typing import Any

import pytest
from invention import invent, requests_and_responses, versions
from kio.index import load_payload_module
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from penstock.protocol.message import Message, Structure

SEEDS = range(4)
NOT_IN_KIO: list[str] = []


def kio_type(cls: type[Message]) -> EntityType:
    return EntityType.request if cls.__name__.endswith("Request") else EntityType.response


def kio_class(cls: type[Message], version: int) -> Any:
    return getattr(load_payload_module(cls.API_KEY, version, kio_type(cls)), cls.__name__)


def plain(value: Any) -> Any:
    """A value of kio's as ours would be."""
    if isinstance(value, datetime.timedelta):
        return round(value / datetime.timedelta(milliseconds=1))
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same(our_item, their_item)
    elif dataclasses.is_dataclass(theirs):
        assert type(ours).__name__ == type(theirs).__name__
        for field in dataclasses.fields(theirs):
            assert_same(our_field(ours, field.name), getattr(theirs, field.name))
    elif theirs is not None or ours not in (-1, bytes(16)):  # kio's None of a time or an id
        assert ours == plain(theirs)


def our_field(ours: Structure, name: str) -> Any:
    """kio leaves the unit out of the names of times, and appends _ to the names of Python's functions."""
    return next(getattr(ours, each) for each in (name, f"{name}_ms", name.rstrip("_")) if hasattr(ours, each))


@pytest.mark.parametrize("cls", requests_and_responses(), ids=lambda cls: cls.__name__)
def test_kio_reads_what_we_write_and_writes_the_same(cls: type[Message]) -> None:
    for version in versions(cls):
        theirs = kio_class(cls, version)
        for seed in SEEDS:
            message = invent(cls, version, seed, tame=True)
            data = bytes(message.encode(version))
            entity, size = entity_reader(theirs)(data, 0)
            assert size == len(data)
            assert_same(message, entity)
            out = io.BytesIO()
            entity_writer(theirs)(out, entity)
            assert out.getvalue() == data
            assert cls.decode(out.getvalue(), version) == message


def test_kio_knows_every_version_of_every_message() -> None:
    unknown = [
        f"{cls.__name__} {version}"
        for cls in requests_and_responses()
        for version in versions(cls)
        if kio_type(cls) not in schema_name_map.get(api_key_map.get(cls.API_KEY, ""), {}).get(version, {})
    ]
    assert unknown == NOT_IN_KIO
