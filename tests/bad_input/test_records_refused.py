"""What is inside a batch, where it has to be looked at: on compacted topics, and where another codec is wanted."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.records.batch import Codec
from penstock.records.builder import build_batch
from penstock.records.compression import compress
from penstock.records.record import Record
from tests.bad_input.bad_batches import CODECS, altered, now_ms, one_batch, packed, record, zeros
from tests.bad_input.raw_client import RawClient, produce
from tests.bad_input.watched_broker import Probe, WatchedBroker

GOOD = b"\x00\x00\x00\x02k\x02v\x00"
"""attributes, timestamp delta 0, offset delta 0, key, value, no headers"""
MIB = 1 << 20
BOMB_BYTES = 80 * MIB
"""more than a batch may expand to"""

MALFORMED = [
    pytest.param(record(GOOD, size=len(GOOD) + 1), 1, id="size-beyond-the-batch"),
    pytest.param(record(GOOD, size=len(GOOD) - 1), 1, id="size-too-small"),
    pytest.param(record(GOOD, size=-1), 1, id="size-negative"),
    pytest.param(record(b""), 1, id="size-0"),
    pytest.param(record(GOOD) + b"\x00", 1, id="leftover-byte"),
    pytest.param(record(GOOD) + record(GOOD), 1, id="leftover-record"),
    pytest.param(record(GOOD), 2, id="a-record-missing"),
    pytest.param(record(b"\x00\x00\x00\x7fk\x02v\x00"), 1, id="key-beyond-the-record"),
    pytest.param(record(b"\x00\x00\x00\x02k\x7fv\x00"), 1, id="value-beyond-the-record"),
    pytest.param(record(b"\x00\x00\x00\x02k\x02v\x02"), 1, id="a-header-missing"),
    pytest.param(record(b"\x00\x00\x00\x02k\x02v\x01"), 1, id="header-count-negative"),
    pytest.param(record(b"\x00\x00\x00\x02k\x02v\xfe\xff\xff\xff\x0f"), 1, id="two-billion-headers"),
    pytest.param(record(b"\x00\x00\x00\x02k\x02v\x02\x01\x02h"), 1, id="header-without-key"),
    pytest.param(record(b"\x00\x00\x00\x02k\x02v\x02\x7fh\x02h"), 1, id="header-key-beyond-the-record"),
    pytest.param(record(b"\x00\x00\x00\x02k\x02v\x00\x00"), 1, id="leftover-byte-in-the-record"),
    pytest.param(b"\x80\x80\x80\x80\x80\x01" + GOOD, 1, id="over-long-varint-as-size"),
    pytest.param(record(b"\x00" + b"\x80" * 10 + b"\x01\x00\x02k\x02v\x00"), 1, id="over-long-varint-as-timestamp"),
    pytest.param(record(b"\x00\x00\x80\x80\x80\x80\x80\x01\x02k\x02v\x00"), 1, id="over-long-varint-as-offset"),
    pytest.param(record(b"\x00\x00\x00\xff\xff\xff\xff\x7fk\x02v\x00"), 1, id="varint-of-more-than-32-bits"),
    pytest.param(b"", 1, id="nothing"),
]


@pytest.mark.parametrize(("payload", "count"), MALFORMED)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_malformed_records_on_a_compacted_topic(client: RawClient, payload: bytes, count: int, codec: Codec) -> None:
    batch = packed(compress(codec, payload), count=count, codec=codec)
    answer = produce(client, "compacted", batch)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert answer.error_message


def test_a_record_without_a_key_on_a_compacted_topic_is_named(client: RawClient) -> None:
    stamp = now_ms()
    batch = build_batch([Record.of(b"k", b"v", stamp), Record.of(None, b"v", stamp), Record.of(None, b"w", stamp)])
    answer = produce(client, "compacted", batch)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [one.batch_index for one in answer.record_errors] == [1, 2]


def test_offset_deltas_that_do_not_count_up(client: RawClient) -> None:
    wrong = record(b"\x00\x00\x00\x02k\x02v\x00") + record(b"\x00\x00\x04\x02k\x02v\x00")
    answer = produce(client, "compacted", packed(wrong, count=2))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [one.batch_index for one in answer.record_errors] == [1]


def test_a_record_from_the_future_in_the_middle_of_a_batch_is_named(client: RawClient) -> None:
    stamp = now_ms()
    batch = build_batch([Record.of(b"k", b"v", at) for at in (stamp, stamp + 10**10, stamp)])
    honest = produce(client, "compacted", batch)
    lying = produce(client, "compacted", altered(batch, max_timestamp=stamp))
    assert honest.error_code == lying.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [one.batch_index for one in lying.record_errors] == [1]


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_that_do_not_expand_on_a_compacted_topic(client: RawClient, codec: Codec) -> None:
    good = compress(codec, record(GOOD) * 100)
    for bad in (b"garbage", b"\x00" * 40, good[:-3], good[: len(good) // 2], b""):
        answer = produce(client, "compacted", packed(bad, count=100, codec=codec))
        assert answer.error_code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD), bad
        assert answer.error_message


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_is_corrupt_where_another_codec_is_wanted(client: RawClient, codec: Codec) -> None:
    topic = "packed-gzip" if codec is Codec.LZ4 else "packed"
    answer = produce(client, topic, packed(b"garbage", codec=codec))
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("topic", ["compacted", "packed"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_before_it_has_gone_off(
    broker: WatchedBroker, probe: Probe, client: RawClient, codec: Codec, topic: str
) -> None:
    if codec is Codec.LZ4 and topic == "packed":
        topic = "packed-gzip"
    bomb = packed(zeros(codec, BOMB_BYTES), codec=codec)
    before_bytes = broker.rss_bytes
    answer = produce(client, topic, bomb)
    if len(bomb) > 1_048_588:
        assert codec is Codec.SNAPPY, "only snappy's bomb is too large before it is opened"
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert broker.rss_bytes - before_bytes < 160 * MIB
    probe.await_cycles(1)


def test_snappy_that_claims_four_gigabytes(client: RawClient) -> None:
    claim = b"\xff\xff\xff\xff\x0f" + bytes(20)
    assert produce(client, "compacted", packed(claim, codec=Codec.SNAPPY)).error_code == ErrorCode.CORRUPT_MESSAGE


def test_a_plain_topic_takes_a_batch_without_looking_inside(client: RawClient) -> None:
    """Said in docs/deviations.md: the bytes are the producer's, their CRC is right, nobody here opens them."""
    assert produce(client, "plain", packed(b"garbage", codec=Codec.GZIP)).error_code == ErrorCode.NONE
    assert produce(client, "plain", one_batch(key=None)).error_code == ErrorCode.NONE
