"""What a producer may not send: each fault by its code, on any topic."""

from __future__ import annotations

from struct import pack_into
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.records.batch import CONTROL_BIT, LENGTH_AT, MAGIC_AT
from penstock.records.builder import build_batch
from penstock.records.record import Record
from tests.bad_input.bad_batches import altered, now_ms, one_batch
from tests.bad_input.raw_client import Closed, RawClient, create_topic, produce, produce_request

HOUR_MS = 3_600_000


def with_magic(magic: int) -> bytearray:
    batch = one_batch()
    batch[MAGIC_AT] = magic & 0xFF
    return batch


def with_length(length: int) -> bytearray:
    batch = one_batch()
    pack_into(">i", batch, LENGTH_AT, length)
    return batch


def with_bad_crc() -> bytearray:
    batch = one_batch()
    batch[-1] ^= 1
    return batch


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param(None, ErrorCode.INVALID_RECORD, id="null"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="empty"),
        pytest.param(one_batch() + one_batch(), ErrorCode.INVALID_RECORD, id="two-batches"),
        pytest.param(one_batch() + b"\x00", ErrorCode.INVALID_RECORD, id="a-byte-behind-the-batch"),
        pytest.param(one_batch() + one_batch()[:20], ErrorCode.INVALID_RECORD, id="torn-second-batch"),
        pytest.param(with_magic(0), ErrorCode.INVALID_RECORD, id="magic-0"),
        pytest.param(with_magic(1), ErrorCode.INVALID_RECORD, id="magic-1"),
        pytest.param(with_magic(3), ErrorCode.CORRUPT_MESSAGE, id="magic-3"),
        pytest.param(with_magic(-1), ErrorCode.CORRUPT_MESSAGE, id="magic-negative"),
        pytest.param(with_length(13), ErrorCode.CORRUPT_MESSAGE, id="length-13"),
        pytest.param(with_length(0), ErrorCode.CORRUPT_MESSAGE, id="length-0"),
        pytest.param(with_length(-1), ErrorCode.CORRUPT_MESSAGE, id="length-negative"),
        pytest.param(with_length(48), ErrorCode.CORRUPT_MESSAGE, id="length-below-the-header"),
        pytest.param(with_length(len(one_batch())), ErrorCode.INVALID_RECORD, id="length-beyond-the-bytes"),
        pytest.param(with_length(2**31 - 1), ErrorCode.INVALID_RECORD, id="length-largest"),
        pytest.param(one_batch()[:11], ErrorCode.INVALID_RECORD, id="11-bytes"),
        pytest.param(one_batch()[:60], ErrorCode.INVALID_RECORD, id="60-bytes"),
        pytest.param(one_batch()[:-1], ErrorCode.INVALID_RECORD, id="last-byte-missing"),
        pytest.param(with_bad_crc(), ErrorCode.CORRUPT_MESSAGE, id="wrong-crc"),
    ],
)
def test_bytes_that_are_not_one_whole_batch(client: RawClient, records: bytes | None, code: ErrorCode) -> None:
    assert produce(client, "plain", records).error_code == code


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"base_offset": 1}, id="base-offset-not-0"),
        pytest.param({"records_count": 0, "last_offset_delta": -1}, id="no-records"),
        pytest.param({"records_count": -1, "last_offset_delta": -2}, id="fewer-than-no-records"),
        pytest.param({"last_offset_delta": 1}, id="last-offset-too-far"),
        pytest.param({"last_offset_delta": -1}, id="last-offset-negative"),
        pytest.param({"records_count": 2}, id="more-records-than-offsets"),
        pytest.param({"attributes": CONTROL_BIT}, id="control-batch"),
        pytest.param({"producer_id": 1, "producer_epoch": 0, "base_sequence": -1}, id="producer-without-sequence"),
    ],
)
def test_a_header_that_no_client_may_send(client: RawClient, fields: dict[str, Any]) -> None:
    answer = produce(client, "plain", altered(one_batch(), **fields))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert answer.error_message


@pytest.mark.parametrize("codec", [5, 6, 7])
@pytest.mark.parametrize("topic", ["plain", "compacted", "packed"])
def test_a_codec_that_does_not_exist(client: RawClient, topic: str, codec: int) -> None:
    answer = produce(client, topic, altered(one_batch(), attributes=codec))
    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_zstd_before_its_version(client: RawClient, version: int) -> None:
    zstd = build_batch([Record.of(b"k", b"v", now_ms())], codec=4)
    assert produce(client, "plain", zstd, version=version).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, "plain", zstd, version=7).error_code == ErrorCode.NONE


@pytest.mark.parametrize("acks", [2, -2, 32_767, -32_768])
def test_acks_that_mean_nothing(client: RawClient, acks: int) -> None:
    assert produce(client, "plain", one_batch(), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_an_error_with_acks_0_closes_the_connection(client: RawClient) -> None:
    with pytest.raises(Closed):
        client.call(produce_request("plain", with_bad_crc(), acks=0), 9)


def test_acks_0_for_an_unknown_topic_closes_the_connection(client: RawClient) -> None:
    with pytest.raises(Closed):
        client.call(produce_request("nowhere", one_batch(), acks=0), 9)


def test_a_batch_above_max_message_bytes(client: RawClient) -> None:
    assert produce(client, "small", one_batch(bytes(1000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(client, "small", one_batch(bytes(900))).error_code == ErrorCode.NONE


def test_a_batch_above_segment_bytes(client: RawClient) -> None:
    answer = produce(client, "short-segments", one_batch(bytes(1_500_000)))
    assert answer.error_code == ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize(
    ("topic", "distance_ms"),
    [
        pytest.param("plain", 2 * HOUR_MS, id="two-hours-ahead"),
        pytest.param("plain", 2**62, id="the-end-of-time"),
        pytest.param("recent", -2 * HOUR_MS, id="older-than-the-topic-allows"),
    ],
)
def test_a_timestamp_out_of_bounds(client: RawClient, topic: str, distance_ms: int) -> None:
    batch = build_batch([Record.of(b"k", b"v", now_ms() + distance_ms)])
    answer = produce(client, topic, batch)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [one.batch_index for one in answer.record_errors] == [0]


def test_a_producer_may_not_stamp_with_the_brokers_time(client: RawClient) -> None:
    batch = build_batch([Record.of(b"k", b"v", now_ms())], timestamp_type=1)
    assert produce(client, "plain", batch).error_code == ErrorCode.INVALID_TIMESTAMP


def test_a_sequence_from_the_future(client: RawClient) -> None:
    producer_id = client.call(InitProducerIdRequest(transactional_id=None), 5).producer_id
    how = {"producer_id": producer_id, "producer_epoch": 0}
    assert produce(client, "plain", one_batch(**how, base_sequence=0)).error_code == ErrorCode.NONE
    answer = produce(client, "plain", one_batch(**how, base_sequence=7))
    assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_older_epoch_of_a_producer(client: RawClient) -> None:
    producer_id = client.call(InitProducerIdRequest(transactional_id=None), 5).producer_id
    new = one_batch(producer_id=producer_id, producer_epoch=5, base_sequence=0)
    old = one_batch(producer_id=producer_id, producer_epoch=4, base_sequence=0)
    assert produce(client, "plain", new).error_code == ErrorCode.NONE
    assert produce(client, "plain", old).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_internal_topic(client: RawClient) -> None:
    create_offsets_topic(client)
    assert produce(client, "__consumer_offsets", one_batch()).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def create_offsets_topic(client: RawClient) -> None:
    from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest

    answer = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["bad-input"]), 4)
    assert answer.coordinators[0].error_code == ErrorCode.NONE


def test_a_topic_with_a_reserved_name_cannot_be_created(client: RawClient) -> None:
    assert create_topic(client, "__consumer_offsets") != ErrorCode.NONE


def test_one_bad_partition_does_not_spoil_the_others(client: RawClient) -> None:
    request = produce_request("plain", one_batch())
    request.topic_data += produce_request("plain", with_bad_crc()).topic_data
    request.topic_data += produce_request("nowhere", one_batch()).topic_data
    answer = client.call(request, 9)
    codes = [one.error_code for topic in answer.responses for one in topic.partition_responses]
    assert codes == [ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
