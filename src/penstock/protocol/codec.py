"""Reading and writing the protocol's primitive types: what the generated messages are made of.

A reader is hostile-proof: it never allocates from a declared count or length that the remaining bytes cannot hold, and
all bad input raises DecodeError. A writer is a plain bytearray that grows at its end, or one that refers to long bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct as Form
from struct import pack, unpack_from
from typing import Any

from penstock.base.errors import DecodeError
from penstock.base.limits import MESSAGE_ELEMENTS_MAX, STRING_BYTES_MAX, TAGGED_FIELDS_MAX
from penstock.base.ports import Buffer
from penstock.base.varint import read_uvarint, write_uvarint

BOOL = Form(">?")
INT8 = Form(">b")
INT16 = Form(">h")
UINT16 = Form(">H")
INT32 = Form(">i")
UINT32 = Form(">I")
INT64 = Form(">q")
FLOAT64 = Form(">d")
APART_BYTES = 16_384
"""bytes that cost more to copy than to be sent as a piece of their own."""


class Reader:
    """A position in a buffer. Every method reads one thing and moves on, or raises DecodeError."""

    __slots__ = ("at", "elements", "elements_max", "end", "tag_end", "view")

    def __init__(self, data: Buffer, at: int = 0, elements_max: int = MESSAGE_ELEMENTS_MAX) -> None:
        self.view = memoryview(data)
        self.at = at
        self.end = len(self.view)
        self.tag_end = 0
        self.elements = 0
        self.elements_max = elements_max

    def unpack(self, form: Form) -> tuple[Any, ...]:
        """A run of fixed-width fields at once."""
        at = self.at
        after = at + form.size
        if after > self.end:
            raise self.short(form.size)
        self.at = after
        return form.unpack_from(self.view, at)

    def boolean(self) -> bool:
        return self.take(1)[0] != 0

    def int8(self) -> int:
        value: int = self.unpack(INT8)[0]
        return value

    def int16(self) -> int:
        value: int = self.unpack(INT16)[0]
        return value

    def uint16(self) -> int:
        value: int = self.unpack(UINT16)[0]
        return value

    def int32(self) -> int:
        value: int = self.unpack(INT32)[0]
        return value

    def uint32(self) -> int:
        value: int = self.unpack(UINT32)[0]
        return value

    def int64(self) -> int:
        value: int = self.unpack(INT64)[0]
        return value

    def float64(self) -> float:
        value: float = self.unpack(FLOAT64)[0]
        return value

    def uuid(self) -> bytes:
        return bytes(self.take(16))

    def uvarint(self) -> int:
        """An unsigned varint of at most five bytes and 32 bits."""
        at = self.at
        if at < self.end and (byte := self.view[at]) < 0x80:
            self.at = at + 1
            return byte
        try:
            value, after = read_uvarint(self.view, self.at)
        except IndexError:
            raise self.short(1) from None
        except ValueError as fault:
            raise DecodeError(str(fault)) from None
        if value > 0xFFFFFFFF:
            raise DecodeError(f"the varint at byte {self.at} has more than 32 bits")
        self.at = after
        return value

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, without a copy."""
        at = self.at
        after = at + size
        if after > self.end:
            raise self.short(size)
        self.at = after
        return self.view[at:after]

    def string(self, flexible: bool) -> str:
        size = self.uvarint() - 1 if flexible else self.int16()
        if not 0 <= size <= STRING_BYTES_MAX:
            raise self.bad_string(size)
        return str(self.take(size), "utf-8", "surrogateescape")

    def nullable_string(self, flexible: bool) -> str | None:
        size = self.uvarint() - 1 if flexible else self.int16()
        if size == -1:
            return None
        if not 0 <= size <= STRING_BYTES_MAX:
            raise self.bad_string(size)
        return str(self.take(size), "utf-8", "surrogateescape")

    def data(self, flexible: bool) -> bytes:
        return bytes(self.records(flexible))

    def nullable_data(self, flexible: bool) -> bytes | None:
        data = self.nullable_records(flexible)
        return None if data is None else bytes(data)

    def records(self, flexible: bool) -> memoryview:
        data = self.nullable_records(flexible)
        if data is None:
            raise DecodeError(f"null where bytes are required, before byte {self.at}")
        return data

    def nullable_records(self, flexible: bool) -> memoryview | None:
        size = self.uvarint() - 1 if flexible else self.int32()
        if size < 0:
            self.null(size)
            return None
        return self.take(size)

    def count(self, flexible: bool, minimal: int, nullable: bool = False) -> int:
        """How many elements follow, each of at least `minimal` bytes; -1 where the array is null and may be."""
        count = self.uvarint() - 1 if flexible else self.int32()
        if count < 0:
            self.null(count)
            if not nullable:
                raise DecodeError(f"null where an array is required, before byte {self.at}")
            return -1
        if count * minimal > self.end - self.at:
            raise DecodeError(f"an array of {count} elements in {self.end - self.at} bytes, before byte {self.at}")
        self.elements += count
        if self.elements > self.elements_max:
            raise DecodeError(f"more than {self.elements_max} array elements in one message, before byte {self.at}")
        return count

    def strings(self, flexible: bool) -> list[str]:
        minimal = 1 if flexible else 2
        return [self.string(flexible) for _ in range(self.count(flexible, minimal))]

    def nullable_strings(self, flexible: bool) -> list[str] | None:
        count = self.count(flexible, 1 if flexible else 2, True)
        return None if count < 0 else [self.string(flexible) for _ in range(count)]

    def ints(self, code: str, size: int, flexible: bool) -> list[int]:
        return self._ints(self.count(flexible, size), code, size)

    def nullable_ints(self, code: str, size: int, flexible: bool) -> list[int] | None:
        count = self.count(flexible, size, True)
        return None if count < 0 else self._ints(count, code, size)

    def _ints(self, count: int, code: str, size: int) -> list[int]:
        at = self.at
        self.at = at + count * size  # which `count` has found to be there
        return list(unpack_from(f">{count}{code}", self.view, at))

    def uuids(self, flexible: bool) -> list[bytes]:
        return [bytes(self.take(16)) for _ in range(self.count(flexible, 16))]

    def nullable_uuids(self, flexible: bool) -> list[bytes] | None:
        count = self.count(flexible, 16, True)
        return None if count < 0 else [bytes(self.take(16)) for _ in range(count)]

    def present(self) -> bool:
        """The byte before a structure that may be null."""
        return self.int8() >= 0

    def tags(self) -> Iterator[int]:
        """The tag of each tagged field, the position at its value. The caller reads the value or calls `skip_tag`."""
        count = self.uvarint()
        if count > TAGGED_FIELDS_MAX:
            raise DecodeError(f"{count} tagged fields, the limit is {TAGGED_FIELDS_MAX}, before byte {self.at}")
        last = -1
        for _ in range(count):
            tag = self.uvarint()
            if tag <= last:
                raise DecodeError(f"tag {tag} after tag {last}, before byte {self.at}")
            last = tag
            size = self.uvarint()
            start = self.at
            if size > self.end - start:
                raise self.short(size)
            self.tag_end = start + size
            yield tag
            if self.at != start + size:
                raise DecodeError(f"tag {tag} has {self.at - start} bytes, {size} declared, at byte {start}")

    def skip_tag(self) -> None:
        self.at = self.tag_end

    def skip_tags(self) -> None:
        """Pass the tagged fields of a structure that knows none."""
        if self.at < self.end and self.view[self.at] == 0:
            self.at += 1
            return
        for _ in self.tags():
            self.at = self.tag_end

    def null(self, length: int) -> None:
        if length != -1:
            raise DecodeError(f"a negative length, {length}, before byte {self.at}")

    def bad_string(self, size: int) -> DecodeError:
        if size == -1:
            return DecodeError(f"null where a string is required, before byte {self.at}")
        if size < 0:
            return DecodeError(f"a negative length, {size}, before byte {self.at}")
        return DecodeError(f"a string of {size} bytes, the limit is {STRING_BYTES_MAX}, before byte {self.at}")

    def short(self, size: int) -> DecodeError:
        return DecodeError(f"{size} bytes are needed at byte {self.at} and {max(self.end - self.at, 0)} are left")


class Pieces(bytearray):
    """A writer that refers to long bytes where they are, so that they need not be copied once more to be sent."""

    def __init__(self, head: bytes = b"") -> None:
        super().__init__(head)
        self._apart: list[tuple[int, memoryview]] = []
        """bytes that are elsewhere, and how many of our own come before them."""
        self.size_bytes_apart = 0

    def refer(self, data: Buffer) -> None:
        self._apart.append((len(self), memoryview(data)))
        self.size_bytes_apart += len(data)

    def pieces(self) -> list[Buffer]:
        """All bytes in their order; none is empty. Nothing can be written any more."""
        found: list[Buffer] = []
        own, at = memoryview(self), 0
        for place, data in self._apart:
            found += [own[at:place], data] if at < place else [data]
            at = place
        return [*found, own[at:]] if at < len(own) else found


def write_string(out: bytearray, text: str, flexible: bool) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    size = len(raw)
    assert size <= STRING_BYTES_MAX, f"a string of {size} bytes cannot be sent"
    if not flexible:
        out += INT16.pack(size)
    elif size < 0x7F:
        out.append(size + 1)
    else:
        write_uvarint(out, size + 1)
    out += raw


def write_nullable_string(out: bytearray, text: str | None, flexible: bool) -> None:
    if text is not None:
        write_string(out, text, flexible)
    elif flexible:
        out.append(0)
    else:
        out += b"\xff\xff"


def write_bytes(out: bytearray, data: Buffer, flexible: bool) -> None:
    write_count(out, len(data), flexible)
    if len(data) >= APART_BYTES and isinstance(out, Pieces):
        out.refer(data)
    else:
        out += data


def write_nullable_bytes(out: bytearray, data: Buffer | None, flexible: bool) -> None:
    if data is None:
        write_null(out, flexible)
    else:
        write_bytes(out, data, flexible)


def write_count(out: bytearray, count: int, flexible: bool) -> None:
    """The length of an array or of bytes."""
    if flexible:
        write_uvarint(out, count + 1)
    else:
        out += INT32.pack(count)


def write_null(out: bytearray, flexible: bool) -> None:
    """An array or bytes that are null."""
    out += b"\0" if flexible else b"\xff\xff\xff\xff"


def write_strings(out: bytearray, texts: list[str], flexible: bool) -> None:
    write_count(out, len(texts), flexible)
    for text in texts:
        write_string(out, text, flexible)


def write_ints(out: bytearray, code: str, values: list[int], flexible: bool) -> None:
    write_count(out, len(values), flexible)
    out += pack(f">{len(values)}{code}", *values)


def write_uuids(out: bytearray, ids: list[bytes], flexible: bool) -> None:
    write_count(out, len(ids), flexible)
    out += b"".join(ids)


def write_tags(out: bytearray, fields: list[tuple[int, bytearray]]) -> None:
    """Tagged fields, each with its encoded value, in the order of their tags."""
    write_uvarint(out, len(fields))
    for tag, value in fields:
        write_uvarint(out, tag)
        write_uvarint(out, len(value))
        out += value
