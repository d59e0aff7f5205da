"""Codecs: round trips, foreign framings, bad data, and bombs."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.batch import Codec
from penstock.records.compression import compress, decompress

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"".join(b'{"id":%d,"square":%d}' % (i, i * i) for i in range(9_000))


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(300_000)])
def test_round_trip(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), len(data)) == data


@given(data=st.binary(max_size=5_000), codec=st.sampled_from(PACKED))
def test_round_trip_of_anything_from_any_buffer(data: bytes, codec: Codec) -> None:
    packed = compress(codec, memoryview(bytearray(data)))
    assert decompress(codec, memoryview(b"junk" + packed)[4:], len(data)) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        *[(Codec.GZIP, level) for level in (-1, 1, 9)],
        *[(Codec.LZ4, level) for level in (1, 9, 17)],
        *[(Codec.ZSTD, level) for level in (-131_072, -1, 1, 22)],
    ],
)
def test_every_level_that_a_topic_may_ask_for(codec: Codec, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT, level), len(TEXT)) == TEXT


def test_higher_levels_pack_tighter() -> None:
    prose = Path(gzip.__file__).read_bytes()
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 1, 17), (Codec.ZSTD, 1, 19)):
        assert len(compress(codec, prose, high)) < len(compress(codec, prose, low))


def test_the_standard_librarys_gzip_agrees() -> None:
    assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT
    assert decompress(Codec.GZIP, gzip.compress(TEXT), len(TEXT)) == TEXT


def test_a_raw_snappy_block_is_read_as_well_as_the_framed_stream() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT
    assert compress(Codec.SNAPPY, TEXT).startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")


def test_snappy_streams_may_follow_one_another() -> None:
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"ab") + compress(Codec.SNAPPY, b"cd"), 4) == b"abcd"


def test_lz4_blocks_are_independent_since_java_refuses_linked_ones() -> None:
    flags = compress(Codec.LZ4, TEXT)[4]
    assert flags >> 6 == 1
    assert flags & 0x20


@pytest.mark.parametrize("codec", PACKED)
def test_data_of_the_budgets_size_passes_and_one_byte_more_does_not(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(KafkaError) as refused:
        decompress(codec, packed, len(TEXT) - 1)
    assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", PACKED)
def test_cut_off_data_is_corrupt(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    for kept in (len(packed) - 1, len(packed) // 2, 18):
        with pytest.raises(KafkaError) as refused:
            decompress(codec, packed[:kept], len(TEXT))
        assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


@given(data=st.binary(min_size=1, max_size=200), codec=st.sampled_from(PACKED))
def test_noise_is_refused_or_read_but_never_anything_else(data: bytes, codec: Codec) -> None:
    try:
        assert len(decompress(codec, data, 1_000)) <= 1_000
    except KafkaError as refused:
        assert refused.code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)


def test_a_snappy_block_that_claims_gigabytes_is_corrupt_before_anything_is_allocated() -> None:
    with pytest.raises(KafkaError) as refused:
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\x00a", 2**33)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist(codec: int) -> None:
    for action in (lambda: compress(codec, b""), lambda: decompress(codec, b"", 10)):
        with pytest.raises(KafkaError) as refused:
            action()
        assert refused.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


BOMB = """
import resource, sys, cramjam
from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.batch import Codec
from penstock.records.compression import decompress
codec = Codec[sys.argv[1]]
compressor = {"GZIP": cramjam.gzip, "LZ4": cramjam.lz4, "ZSTD": cramjam.zstd}[codec.name].Compressor()
packed = b""
for _ in range(16):
    compressor.compress(bytes(1 << 24))
    packed += bytes(compressor.flush())
packed += bytes(compressor.finish())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(codec, packed, 8 << 20)
except KafkaError as refused:
    assert refused.code == ErrorCode.MESSAGE_TOO_LARGE
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_of_256_mb_costs_the_budget_in_memory(codec: Codec) -> None:
    """In a process of its own, whose high-water mark only this test moves."""
    grown = subprocess.run([sys.executable, "-c", BOMB, codec.name], capture_output=True, text=True, check=True).stdout
    assert int(grown) < 32 * 1024, f"{grown} KiB for a budget of 8 MiB"
