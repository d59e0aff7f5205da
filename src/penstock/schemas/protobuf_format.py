"""Protobuf values, bare or as a registry's frame holds them: as columns, and one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from penstock.schemas import dataclasses
from penstock.schemas.errors import Undecodable
from penstock.schemas.formats import Decoded, one_array, scattered
from penstock.schemas.protobuf_columns import filling, messages_column
from penstock.schemas.protobuf_schema import arrow_type, descriptor_of, indexes_of
from penstock.schemas.pylists import pylist

T = TypeVar("T")


class Protobuf:
    """One message of a .proto text."""

    name = "protobuf"

    def __init__(self, text: str, message: str | None = None, imports: Mapping[str, str] | None = None) -> None:
        self._given = (text, message, dict(imports or {}))
        self.descriptor = descriptor_of(text, message, imports)
        self.type = arrow_type(self.descriptor)
        self.indexes = indexes_of(self.descriptor)
        self._class = GetMessageClass(self.descriptor)
        self._column = messages_column(self.descriptor)

    def __reduce__(self) -> tuple[Callable[..., Protobuf], tuple[str, str | None, dict[str, str]]]:
        return (Protobuf, self._given)

    def decode(self, data: pa.Array) -> Decoded:
        parse = self._class.FromString
        rows = pylist(one_array(data).cast(pa.binary()))
        reasons: list[str | None] = [None] * len(rows)
        messages: list[Message] = []
        places: list[int] = []
        for row, one in enumerate(rows):
            if one is None:
                continue
            try:
                messages.append(parse(one))
                places.append(row)
            except DecodeError:
                reasons[row] = f"not Protobuf of {self.descriptor.full_name}"
        values = self._column(messages)
        read = scattered(
            [(np.array(places), Decoded(values, pa.nulls(len(values), pa.string())))], len(rows), self.type
        )
        return Decoded(read.values, pa.array(reasons, pa.string()))

    def encode(self, values: pa.Array) -> pa.Array:
        fill = filling(self.descriptor)
        rows = [
            None if value is None else _encoded(self._class(), fill, value, f"row {row}")
            for row, value in enumerate(pylist(one_array(values)))
        ]
        return pa.array(rows, pa.binary())


def _encoded(message: Message, fill: Callable[[Message, Any], None], value: Any, which: str) -> bytes:
    try:
        fill(message, value)
        return bytes(message.SerializeToString(deterministic=True))
    except (TypeError, ValueError, EncodeError, json_format.ParseError) as error:
        raise Undecodable(f"{which} has no Protobuf of {message.DESCRIPTOR.full_name}: {error}") from None


class ProtobufSerde(Generic[T]):
    """One message at a time: dicts, or objects of a type (a dataclass, a TypedDict, a msgspec.Struct).

    Dicts have the names of the .proto text and Arrow's Python values: datetimes for timestamps, names for enums, dicts
    for maps, None for what is absent and has presence.
    """

    def __init__(
        self, text: str, message: str | None = None, kind: Any = dict, imports: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._format = Protobuf(text, message, imports)
        self._fill = filling(self._format.descriptor)

    def __reduce__(self) -> tuple[type[ProtobufSerde[Any]], tuple[Any, ...]]:
        text, message, imports = self._format._given
        return (ProtobufSerde, (text, message, self.kind, imports))

    def encode(self, obj: T | None) -> bytes | None:
        if obj is None:
            return None
        value = obj if isinstance(obj, dict) else dataclasses.plain_of(obj)
        return _encoded(self._format._class(), self._fill, value, "the value")

    def decode(self, data: bytes) -> T:
        read = self._format.decode(pa.array([data], pa.binary()))
        if read.failed:
            raise Undecodable(read.reasons[0].as_py())
        found: Any = _with_dicts(read.values.to_pylist()[0], self._format.type)
        if self.kind is dict:
            return found  # type: ignore[no-any-return] # T is dict
        try:
            made: T = msgspec.convert(found, self.kind)
        except msgspec.ValidationError as error:
            raise Undecodable(f"not {getattr(self.kind, '__name__', self.kind)}: {error}") from None
        return made


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    """Maps, which Arrow gives as pairs, as dicts."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {one.name: _with_dicts(value[one.name], one.type) for one in kind}
    if pa.types.is_map(kind):
        return {key: _with_dicts(one, kind.item_type) for key, one in value}
    if pa.types.is_list(kind):
        return [_with_dicts(one, kind.value_type) for one in value]
    return value
