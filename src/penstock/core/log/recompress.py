"""A batch in the codec that its topic asks for (`compression.type` other than "producer").

Records are expanded and packed again as one run of bytes: neither offsets nor times nor sequences change, so nothing
inside is decoded. What a batch expands to is bounded, so that a bomb is refused and not materialised.
"""

from __future__ import annotations

from penstock.base.ports import Buffer
from penstock.records.batch import CODEC_MASK, Codec, read_header
from penstock.records.builder import seal
from penstock.records.compression import compress
from penstock.records.record import payload

CODECS: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""`compression.type` of a topic; None keeps what the producer chose."""


def recompress(
    buf: Buffer, at: int, target: Codec | None, *, level: int | None = None, budget_bytes: int
) -> bytearray | None:
    """The batch at `at` in `target`, or None where it may stay as it is: the topic leaves the choice to producers, it
    is in that codec already (at whatever level), or it is a control batch, which is never compressed."""
    header = read_header(buf, at)
    if target is None or header.codec == target or header.is_control:
        return None
    records = payload(buf, at, budget_bytes=budget_bytes)
    attributes = header.attributes & ~CODEC_MASK | target
    return seal(header._replace(attributes=attributes), compress(target, records, level))
