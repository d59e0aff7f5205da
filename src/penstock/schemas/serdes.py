"""One value at a time, by Python types: what the streams read and write rows with.

`Serde` is the contract: `encode(obj) -> bytes | None` (None stays None: a tombstone) and `decode(data) -> obj`, which
raises Undecodable. Here are those without a schema of their own; `avro_format.AvroSerde` and
`protobuf_format.ProtobufSerde` are beside their formats. All can be pickled.
"""

from __future__ import annotations

import struct
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from penstock.schemas.errors import Undecodable

T = TypeVar("T")


@runtime_checkable
class Serde(Protocol[T]):
    """Objects of one type to bytes and back."""

    def encode(self, obj: T | None) -> bytes | None: ...

    def decode(self, data: bytes) -> T: ...


class BytesSerde:
    """Bytes as they are."""

    def encode(self, obj: bytes | None) -> bytes | None:
        return None if obj is None else bytes(obj)

    def decode(self, data: bytes) -> bytes:
        return data


class TextSerde:
    """UTF-8."""

    def encode(self, obj: str | None) -> bytes | None:
        return None if obj is None else obj.encode()

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Undecodable(f"not UTF-8: byte {error.start} is 0x{data[error.start]:02x}") from None


class NumberSerde(Generic[T]):
    """A number of fixed size, most significant byte first, as Kafka's own serializers write it."""

    def __init__(self, layout: str, name: str) -> None:
        self.layout = layout
        self.name = name

    def encode(self, obj: T | None) -> bytes | None:
        if obj is None:
            return None
        try:
            return struct.pack(self.layout, obj)
        except struct.error as error:
            raise Undecodable(f"{obj!r} is no {self.name}: {error}") from None

    def decode(self, data: bytes) -> T:
        size = struct.calcsize(self.layout)
        if len(data) != size:
            raise Undecodable(f"{len(data)} bytes where {self.name} has {size}")
        number: T = struct.unpack(self.layout, data)[0]
        return number


class JsonSerde(Generic[T]):
    """JSON of a type: a dataclass, a TypedDict, a msgspec.Struct, dict, list[int] ...; Any takes it as it comes."""

    def __init__(self, kind: Any = Any) -> None:
        self.kind = kind
        self._decode = msgspec.json.Decoder(kind).decode
        self._encode = msgspec.json.Encoder(decimal_format="number").encode

    def __reduce__(self) -> tuple[type[JsonSerde[Any]], tuple[Any]]:
        return (JsonSerde, (self.kind,))

    def encode(self, obj: T | None) -> bytes | None:
        if obj is None:
            return None
        try:
            return self._encode(obj)
        except (TypeError, ValueError, OverflowError) as error:
            raise Undecodable(f"no JSON: {error}") from None

    def decode(self, data: bytes) -> T:
        try:
            found: T = self._decode(data)
        except msgspec.ValidationError as error:
            raise Undecodable(f"not {_named(self.kind)}: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Undecodable(f"not JSON: {error}") from None
        except RecursionError:
            raise Undecodable("not JSON that is read here: it is nested too deep") from None
        return found


def _named(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)


BYTES = BytesSerde()
TEXT = TextSerde()
INT: NumberSerde[int] = NumberSerde(">i", "an int")
LONG: NumberSerde[int] = NumberSerde(">q", "a long")
DOUBLE: NumberSerde[float] = NumberSerde(">d", "a double")

BY_TYPE: dict[Any, Serde[Any]] = {bytes: BYTES, str: TEXT, int: LONG, float: DOUBLE}


def serde_of(kind: Any) -> Serde[Any]:
    """The serde that a type stands for: text, bytes, a long, a double, else JSON; a serde stands for itself."""
    if not isinstance(kind, type) and isinstance(kind, Serde):
        return kind
    return BY_TYPE.get(kind) or JsonSerde(kind)
