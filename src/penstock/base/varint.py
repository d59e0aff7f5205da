"""Varints: seven bits a byte, lowest first; signed ones in zigzag, so that small negative numbers stay short.

Readers take a buffer and a position and return the value and the position after it. IndexError where the buffer ends
inside a varint and ValueError where it does not end in time: both are the caller's to turn into what he says of bad
bytes.
"""

from __future__ import annotations

from penstock.base.ports import Buffer

VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10


def read_uvarint(buf: Buffer, at: int, bytes_max: int = VARINT_BYTES_MAX) -> tuple[int, int]:
    """An unsigned varint."""
    byte = buf[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for index in range(1, bytes_max):
        byte = buf[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError(f"the varint at byte {at} has more than {bytes_max} bytes")


def read_varint(buf: Buffer, at: int) -> tuple[int, int]:
    """A signed varint of 32 bits."""
    raw, after = read_uvarint(buf, at)
    return (raw >> 1) ^ -(raw & 1), after


def read_varlong(buf: Buffer, at: int) -> tuple[int, int]:
    """A signed varint of 64 bits."""
    raw, after = read_uvarint(buf, at, VARLONG_BYTES_MAX)
    return (raw >> 1) ^ -(raw & 1), after


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_varint(out: bytearray, value: int) -> None:
    """A signed varint of any size up to 64 bits."""
    write_uvarint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def varint_size(value: int) -> int:
    """Bytes that `write_varint` would append."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    return max(1, (raw.bit_length() + 6) // 7)
