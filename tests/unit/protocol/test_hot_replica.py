"""A follower's fetch by hand is the generated one, byte for byte, and so is what it reads."""

from __future__ import annotations

import pytest

from penstock.base.errors import DecodeError
from penstock.protocol.generated.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from penstock.protocol.generated.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from penstock.protocol.hot_replica import Copies, Copy, FollowerFetch, decode_copies

ONE, TWO = b"1" * 16, b"2" * 16


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_the_request_is_the_generated_one(version):
    places = {ONE: [(0, 3, 1_000, 2, 5, 1_048_576), (200, 4, 2**40, -1, 0, 77)], TWO: [(7, 1, 0, -1, 0, 1)]}
    by_hand = FollowerFetch(2, 99, 500, 1, 10_485_760, 7, 8, list(places.items()), [(ONE, [1, 2]), (TWO, [3])])
    generated = FetchRequest(
        replica_state=ReplicaState(replica_id=2, replica_epoch=99),
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=10_485_760,
        session_id=7,
        session_epoch=8,
        topics=[
            FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=last,
                        log_start_offset=start,
                        partition_max_bytes=size,
                    )
                    for index, epoch, offset, last, start, size in named
                ],
            )
            for topic_id, named in places.items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic_id=ONE, partitions=[1, 2]),
            ForgottenTopic(topic_id=TWO, partitions=[3]),
        ],
    )
    written = bytearray()
    by_hand.write(written, version)
    assert written == generated.encode(version)


def answer() -> FetchResponse:
    plain = PartitionData(
        partition_index=0, high_watermark=7, last_stable_offset=6, log_start_offset=1, records=b"r" * 300
    )
    empty = PartitionData(partition_index=1, high_watermark=9, log_start_offset=2, records=b"")
    refused = PartitionData(
        partition_index=2,
        error_code=6,
        high_watermark=-1,
        current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=4),
        aborted_transactions=[AbortedTransaction(producer_id=5, first_offset=6)],
    )
    parted = PartitionData(partition_index=3, high_watermark=4, diverging_epoch=EpochEndOffset(epoch=2, end_offset=44))
    return FetchResponse(
        error_code=0,
        session_id=12,
        responses=[
            FetchableTopicResponse(topic_id=ONE, partitions=[plain, empty, refused]),
            FetchableTopicResponse(topic_id=TWO, partitions=[parted]),
        ],
    )


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_the_answer_is_read_as_the_generated_class_reads_it(version):
    body = memoryview(bytes(answer().encode(version)))
    assert decode_copies(body, version) == Copies(
        0,
        12,
        [
            Copy(ONE, 0, 0, 7, 1, memoryview(b"r" * 300), None),
            Copy(ONE, 1, 0, 9, 2, None, None),
            Copy(ONE, 2, 6, -1, -1, None, None),
            Copy(TWO, 3, 0, 4, -1, None, (2, 44)),
        ],
    )


def test_an_answer_that_is_cut_short_is_refused():
    whole = bytes(answer().encode(17))
    for size in range(len(whole) - 1):
        with pytest.raises(DecodeError):
            decode_copies(memoryview(whole[:size]), 17)
