"""From objects to bytes and back: text, JSON, typed JSON, and bytes as they are.

A serializer is any object with `serialize(value) -> bytes` and `deserialize(data) -> value`. None never reaches one:
a null key or value stays null, on the way in and out (a null value is a tombstone in a compacted topic).
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

import msgspec

T = TypeVar("T")
T_in = TypeVar("T_in", contravariant=True)
T_out = TypeVar("T_out", covariant=True)


class Serializer(Protocol[T_in]):
    def serialize(self, value: T_in) -> bytes: ...


class Deserializer(Protocol[T_out]):
    def deserialize(self, data: bytes) -> T_out: ...


class Bytes:
    """Bytes as they are; text is accepted on the way in, as UTF-8."""

    def serialize(self, value: bytes | bytearray | memoryview | str) -> bytes:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, bytes):
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise TypeError(
            f"bytes or str expected, not {type(value).__name__}; give the producer a serializer such as Json()"
        )

    def deserialize(self, data: bytes) -> bytes:
        return data


class Text:
    """Text in one encoding; `errors` as in `bytes.decode`."""

    def __init__(self, encoding: str = "utf-8", errors: str = "strict") -> None:
        self.encoding = encoding
        self.errors = errors

    def serialize(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"str expected, not {type(value).__name__}")
        return value.encode(self.encoding, self.errors)

    def deserialize(self, data: bytes) -> str:
        return data.decode(self.encoding, self.errors)


class Json:
    """Any JSON value. Dates, decimals, UUIDs, dataclasses and msgspec structs are written too; they come back as
    plain JSON.
    """

    def __init__(self, *, sort_keys: bool = False) -> None:
        self._encoder = msgspec.json.Encoder(order="deterministic" if sort_keys else None)
        self._decoder = msgspec.json.Decoder()

    def serialize(self, value: Any) -> bytes:
        return self._encoder.encode(value)

    def deserialize(self, data: bytes) -> Any:
        return self._decoder.decode(data)


class Typed(Generic[T]):
    """JSON that is checked against a type on the way in and out: a dataclass, a msgspec.Struct, a TypedDict,
    list[int] ...
    """

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(kind)

    def serialize(self, value: T) -> bytes:
        data = self._encoder.encode(value)
        if not (isinstance(self.kind, type) and isinstance(value, self.kind)):
            self._decoder.decode(data)
        return data

    def deserialize(self, data: bytes) -> T:
        return self._decoder.decode(data)


class Integer:
    """A signed big-endian number of 4 or 8 bytes, as Java's IntegerSerializer and LongSerializer write it."""

    def __init__(self, size_bytes: int = 8) -> None:
        if size_bytes not in (4, 8):
            raise ValueError(f"a number of 4 or 8 bytes, not {size_bytes}")
        self.size_bytes = size_bytes

    def serialize(self, value: int) -> bytes:
        return value.to_bytes(self.size_bytes, "big", signed=True)

    def deserialize(self, data: bytes) -> int:
        if len(data) != self.size_bytes:
            raise ValueError(f"{len(data)} bytes where {self.size_bytes} were expected")
        return int.from_bytes(data, "big", signed=True)
