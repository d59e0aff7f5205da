"""Batches changed to their topic's codec."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.log.recompress import CODECS, recompress
from penstock.records.batch import Codec, check_crc, read_header
from penstock.records.builder import build_batch
from penstock.records.control import EndMarker, build_end_marker
from penstock.records.record import Record, read_records

BUDGET = 1 << 20
RECORDS = [Record(40 + i, 1_000 + i, b"key %d" % i, b"value " * i) for i in range(50)]


def made(codec: Codec) -> bytearray:
    return build_batch(
        RECORDS, base_offset=40, codec=codec, producer_id=9, producer_epoch=2, base_sequence=7, transactional=True
    )


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_only_the_codec_changes(source: Codec, target: Codec) -> None:
    raw = made(source)
    out = recompress(b"abc" + raw, 3, target, budget_bytes=BUDGET)
    if source == target:
        assert out is None
        return
    assert out is not None
    assert check_crc(out, 0, len(out))
    assert read_records(out) == RECORDS
    before, after = read_header(raw), read_header(out)
    assert after.codec == target
    assert after._replace(length=0, crc=0, attributes=0) == before._replace(length=0, crc=0, attributes=0)
    assert after.is_transactional


def test_producer_leaves_it_alone() -> None:
    assert recompress(made(Codec.ZSTD), 0, CODECS["producer"], budget_bytes=BUDGET) is None


def test_control_batches_stay_uncompressed() -> None:
    marker = build_end_marker(EndMarker(True, 1), producer_id=9, producer_epoch=2, timestamp=5)
    assert recompress(marker, 0, Codec.GZIP, budget_bytes=BUDGET) is None


def test_a_bomb_is_refused() -> None:
    bomb = build_batch([Record.of(b"k", bytes(BUDGET))], codec=Codec.ZSTD)
    with pytest.raises(KafkaError) as refused:
        recompress(bomb, 0, Codec.LZ4, budget_bytes=BUDGET)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
