"""Protobuf messages to columns and back, an attribute of all messages at once, never a dict for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from penstock.schemas.protobuf_schema import (
    DOCUMENTS,
    DURATION,
    MESSAGES,
    TIMESTAMP,
    WRAPPERS,
    arrow_field,
    arrow_type,
    is_map,
    is_repeated,
    message_type_name,
    one_field,
)  # fmt: skip

Column = Callable[[Sequence[Any]], pa.Array]
MICROS, NANOS = 1_000_000, 1_000
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def messages_column(descriptor: Descriptor) -> Column:
    """What makes a struct column of messages, none of them None."""
    fields = list(arrow_type(descriptor))
    columns = [_field(one) for one in descriptor.fields]

    def column(messages: Sequence[Message]) -> pa.Array:
        if not columns:
            return pa.array([{}] * len(messages), pa.struct([]))
        members = [one(messages) for one in columns]
        return pa.StructArray.from_arrays(members, fields=fields)

    return column


def _field(field: FieldDescriptor) -> Column:
    """The column of one field of the messages."""
    name, kind = field.name, arrow_field(field).type
    if is_map(field):
        return _map(field)
    values = _values(field)
    if is_repeated(field):
        return lambda messages: _lists([getattr(one, name) for one in messages], values, kind)
    if not field.has_presence:
        return lambda messages: values([getattr(one, name) for one in messages])

    def present(messages: Sequence[Message]) -> pa.Array:
        has = [one.HasField(name) for one in messages]
        found = values([getattr(one, name) for one, there in zip(messages, has, strict=True) if there])
        return found if all(has) else _spread(found, has)

    return present


def _spread(found: pa.Array, has: list[bool]) -> pa.Array:
    there = np.array(has, bool)
    return found.take(pa.array(np.cumsum(there) - 1, mask=~there))


def _lists(sequences: list[Any], values: Column, kind: pa.DataType) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in sequences], dtype=np.int64))).astype(np.int32)
    items = values(list(chain.from_iterable(sequences)))
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind)


def _map(field: FieldDescriptor) -> Column:
    name, kind = field.name, arrow_field(field).type
    keys, values = (_values(field.message_type.fields_by_name[part]) for part in ("key", "value"))

    def column(messages: Sequence[Message]) -> pa.Array:
        maps = [getattr(one, name) for one in messages]
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in maps], dtype=np.int64))).astype(np.int32)
        pairs = [(key, one[key]) for one in maps for key in sorted(one)]
        return pa.MapArray.from_arrays(
            pa.array(offsets), keys([key for key, _ in pairs]), values([value for _, value in pairs]), type=kind
        )

    return column


def _values(field: FieldDescriptor) -> Column:
    """The column of values of a field, each of them there."""
    kind = one_field("value", field, ()).type
    message = message_type_name(field)
    if message in MESSAGES:
        return lambda found: pa.array(
            [one.seconds * MICROS + one.nanos // NANOS for one in found], pa.int64()
        ).cast(kind)  # fmt: skip
    if message in WRAPPERS:
        return lambda found: pa.array([one.value for one in found], kind)
    if message in DOCUMENTS:
        return lambda found: pa.array([json_format.MessageToJson(one, indent=None) for one in found], kind)
    if message:
        return messages_column(field.message_type)
    if field.enum_type is not None:
        names = _enum_names(field.enum_type)
        return lambda found: pa.array([names.get(one) or str(one) for one in found], kind)
    return lambda found: pa.array(found, kind)


def _enum_names(enum: EnumDescriptor) -> dict[int, str]:
    """The first name of each number."""
    names: dict[int, str] = {}
    for one in enum.values:
        names.setdefault(one.number, one.name)
    return names


Fill = Callable[[Message, Any], None]


def filling(descriptor: Descriptor) -> Fill:
    """What puts a dict, as Arrow gives it, into an empty message; what is null or missing is left out."""
    parts = [(one.name, _filling(one)) for one in descriptor.fields]

    def fill(message: Message, value: Any) -> None:
        for name, put in parts:
            one = value.get(name)
            if one is not None:
                put(message, one)

    return fill


def _filling(field: FieldDescriptor) -> Fill:
    name = field.name
    if is_map(field):
        return _filling_map(field)
    if field.message_type is None:
        convert = _scalar(field)
        if is_repeated(field):
            return lambda message, values: getattr(message, name).extend([convert(one) for one in values])
        return lambda message, value: setattr(message, name, convert(value))
    put = _filling_message(field.message_type)
    if is_repeated(field):

        def fill_each(message: Message, values: Any) -> None:
            for one in values:
                put(getattr(message, name).add(), one)

        return fill_each

    def fill_one(message: Message, value: Any) -> None:
        inner = getattr(message, name)
        inner.SetInParent()
        put(inner, value)

    return fill_one


def _filling_map(field: FieldDescriptor) -> Fill:
    name, value_field = field.name, field.message_type.fields_by_name["value"]
    if value_field.message_type is not None:
        put = _filling_message(value_field.message_type)

        def fill(message: Message, pairs: Any) -> None:
            for key, value in _pairs(pairs):
                put(getattr(message, name)[key], value)

        return fill
    convert = _scalar(value_field)

    def fill_scalars(message: Message, pairs: Any) -> None:
        target = getattr(message, name)
        for key, value in _pairs(pairs):
            target[key] = convert(value)

    return fill_scalars


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else value


def _filling_message(descriptor: Descriptor) -> Fill:
    if descriptor.full_name in (TIMESTAMP, DURATION):
        return _fill_moment
    if descriptor.full_name in WRAPPERS:
        convert = _scalar(descriptor.fields_by_name["value"])
        return lambda message, value: setattr(message, "value", convert(value))
    if descriptor.full_name in DOCUMENTS:
        return _parse_into
    return filling(descriptor)


def _parse_into(message: Message, text: str) -> None:
    json_format.Parse(text, message)


def _fill_moment(message: Any, value: Any) -> None:
    """A Timestamp from a datetime (without a zone: UTC), or a Duration from a timedelta."""
    if isinstance(value, datetime):
        value = value.replace(tzinfo=EPOCH.tzinfo) - EPOCH if value.tzinfo is None else value - EPOCH
    micros = value // timedelta(microseconds=1)
    message.seconds, rest = divmod(micros, MICROS)
    message.nanos = rest * NANOS


def _scalar(field: FieldDescriptor) -> Callable[[Any], Any]:
    if field.enum_type is not None:
        numbers = {one.name: one.number for one in field.enum_type.values}
        return lambda value: numbers[value] if value in numbers else int(value)
    if field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64):
        return lambda value: int(value) if isinstance(value, Decimal) else value
    return lambda value: value
