"""Gzip, snappy, lz4 and zstd as Kafka's clients write them, and expansion under a byte budget.

A header's claim is never allocated: expansion writes into a buffer of ours that starts near the input's size and grows
until the data fits or the budget is reached, so a bomb costs at most the budget.
"""

from __future__ import annotations

from struct import Struct

import cramjam

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Buffer
from penstock.records.batch import Codec

GZIP_LEVELS = range(1, 10)
LZ4_LEVELS = range(1, 18)
ZSTD_LEVELS = range(-131_072, 23)

GZIP_DEFAULT_LEVEL = -1
"""`compression.gzip.level` by default: let the library choose."""
LZ4_DEFAULT_LEVEL = 9
"""`compression.lz4.level` by default; as in the Java client it means the fast compressor, not its high ninth level."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32_768
_SNAPPY_RATIO_MAX = 22
"""no snappy element yields more: three bytes copy at most 64."""

_LZ4_FAST = 1
_LZ4_LEVEL_MAX = 12

_FIRST_GUESS = 4
_GROWTH = 4
_GUESS_BYTES_MIN = 4_096
_FULL = "failed to write whole buffer"

_U32 = Struct(">I")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` as `codec` has it on the wire. Configurations bound the level; one outside its range is our mistake."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return _gzip(data, level)
    if codec == Codec.SNAPPY:
        return _xerial(data)
    if codec == Codec.LZ4:
        return _lz4(data, level)
    if codec == Codec.ZSTD:
        assert level is None or level in ZSTD_LEVELS, level
        return bytes(cramjam.zstd.compress(data, level))
    raise _unsupported(codec)


def decompress(codec: int, data: Buffer, budget_bytes: int) -> bytes:
    """At most `budget_bytes` of what `data` expands to: MESSAGE_TOO_LARGE beyond it, CORRUPT_MESSAGE on bad data."""
    if codec == Codec.NONE:
        if len(data) > budget_bytes:
            raise _too_large(Codec.NONE, budget_bytes)
        return bytes(data)
    if codec == Codec.GZIP:
        return _expand(Codec.GZIP, data, budget_bytes)
    if codec == Codec.SNAPPY:
        return _unsnappy(memoryview(data), budget_bytes)
    if codec == Codec.LZ4:
        return _expand(Codec.LZ4, data, budget_bytes)
    if codec == Codec.ZSTD:
        return _expand(Codec.ZSTD, data, budget_bytes)
    raise _unsupported(codec)


def _gzip(data: Buffer, level: int | None) -> bytes:
    if level is None or level == GZIP_DEFAULT_LEVEL:
        return bytes(cramjam.gzip.compress(data))
    assert level in GZIP_LEVELS, level
    return bytes(cramjam.gzip.compress(data, level))


def _lz4(data: Buffer, level: int | None) -> bytes:
    """One frame of independent blocks: the Java client refuses the linked blocks that lz4 writes by itself."""
    if level is None or level == LZ4_DEFAULT_LEVEL:
        level = _LZ4_FAST
    assert level in LZ4_LEVELS, level
    frame = cramjam.lz4.Compressor(level=min(level, _LZ4_LEVEL_MAX), content_checksum=False, block_linked=False)
    frame.compress(bytes(data))
    return bytes(frame.finish())


def _xerial(data: Buffer) -> bytes:
    """The stream of the Java client: a header, then blocks of 32 KiB, each behind its compressed length."""
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for at in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK_BYTES]))
        parts += (_U32.pack(len(block)), block)
    return b"".join(parts)


_EXPANDERS = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}


def _expand(codec: Codec, data: Buffer, budget_bytes: int) -> bytes:
    capacity = min(max(len(data) * _FIRST_GUESS, _GUESS_BYTES_MIN), budget_bytes)
    expand_into = _EXPANDERS[codec]
    while True:
        out = bytearray(capacity)
        try:
            size = expand_into(data, out)
        except cramjam.DecompressionError as error:
            if _FULL not in str(error):
                raise _corrupt(codec, error) from None
        else:
            return bytes(memoryview(out)[:size])
        if capacity == budget_bytes:
            raise _too_large(codec, budget_bytes)
        capacity = min(capacity * _GROWTH, budget_bytes)


def _unsnappy(data: memoryview, budget_bytes: int) -> bytes:
    """A xerial stream, or one raw block: librdkafka sends either."""
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return _unsnappy_block(data, budget_bytes, budget_bytes)
    parts: list[bytes] = []
    at, left = len(_XERIAL_HEADER), budget_bytes
    while at < len(data):
        if data[at : at + len(XERIAL_MAGIC)] == XERIAL_MAGIC:  # streams may follow one another
            at += len(_XERIAL_HEADER)
            continue
        if at + 4 > len(data):
            raise _corrupt(Codec.SNAPPY, "a block's length is cut off")
        size: int = _U32.unpack_from(data, at)[0]
        at += 4
        if size > len(data) - at:
            raise _corrupt(Codec.SNAPPY, f"a block of {size} bytes where {len(data) - at} are left")
        part = _unsnappy_block(data[at : at + size], left, budget_bytes)
        parts.append(part)
        left -= len(part)
        at += size
    return b"".join(parts)


def _unsnappy_block(block: memoryview, left: int, budget_bytes: int) -> bytes:
    try:
        claim = cramjam.snappy.decompress_raw_len(block)
        if claim > len(block) * _SNAPPY_RATIO_MAX:
            raise _corrupt(Codec.SNAPPY, f"{len(block)} bytes cannot expand to {claim}")
        if claim > left:
            raise _too_large(Codec.SNAPPY, budget_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _corrupt(Codec.SNAPPY, error) from None


def _corrupt(codec: Codec, cause: object) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"records compressed with {codec.name.lower()} do not expand: {cause}")


def _too_large(codec: Codec, budget_bytes: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"records compressed with {codec.name.lower()} expand to more than {budget_bytes} bytes; send smaller batches",
    )


def _unsupported(codec: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression codec {codec} does not exist; use 0 to 4")
