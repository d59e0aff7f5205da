"""Record batches that are wrong in one place, with a CRC that fits all the same: what only a look inside can find."""

from __future__ import annotations

import time
from typing import Any

from penstock.records.batch import BatchHeader, Codec, read_header, write_crc, write_header
from penstock.records.builder import append_varint, seal
from penstock.records.compression import compress
from tests.bad_input.raw_client import one_batch

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def altered(batch: bytearray, **fields: Any) -> bytearray:
    """The batch with these header fields and the CRC that belongs to them."""
    changed = bytearray(batch)
    write_header(changed, 0, read_header(changed)._replace(**fields))
    write_crc(changed, 0, len(changed))
    return changed


def packed(payload: bytes, *, count: int = 1, codec: int = 0) -> bytearray:
    """A batch whose records are these very bytes, compressed or not by `codec` already."""
    stamp = now_ms()
    header = BatchHeader(0, 0, -1, 2, 0, codec, count - 1, stamp, stamp, -1, -1, -1, count)
    return seal(header, payload)


def record(body: bytes, size: int | None = None) -> bytes:
    """One record of this body behind its size, or behind another one."""
    out = bytearray()
    append_varint(out, len(body) if size is None else size)
    return bytes(out + body)


def zeros(codec: Codec, size_bytes: int) -> bytes:
    """What expands to that many zeros."""
    if codec is not Codec.SNAPPY:
        return compress(codec, bytes(size_bytes))
    header = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    block_bytes = 1 << 20
    block = compress(codec, bytes(32_768))[len(header) + 4 :]
    blocks = (len(block).to_bytes(4, "big") + block) * (block_bytes // 32_768)
    return header + blocks * (size_bytes // block_bytes)


__all__ = ["CODECS", "altered", "now_ms", "one_batch", "packed", "record", "zeros"]
