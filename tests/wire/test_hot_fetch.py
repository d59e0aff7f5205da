"""The hand-written Fetch codec against the generated one, in every version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invention import invent

from penstock.base.errors import DecodeError
from penstock.protocol.frames import response_frame
from penstock.protocol.generated.fetch_request import FetchRequest
from penstock.protocol.generated.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from penstock.protocol.hot_fetch import Fetched, decode_fetch_request, encode_fetch_response
from penstock.protocol.hot_parts import Endpoint, LeaderHint

VERSIONS = range(4, 19)
INT16, INT32, INT64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
TOPIC_ID = st.binary(min_size=16, max_size=16)

fetched = st.builds(
    Fetched,
    INT32,
    INT16,
    INT64,
    INT64,
    INT64,
    st.none() | st.lists(st.tuples(INT64, INT64), max_size=2),
    st.just(-1),
    st.none() | st.lists(st.binary(min_size=1, max_size=300), max_size=3),
    st.just(()),
    st.none() | st.tuples(INT32, INT64) | st.just((-1, -1)),
    st.none() | st.builds(LeaderHint, INT32, INT32) | st.just(LeaderHint()),
    st.none() | st.tuples(INT64, INT32) | st.just((-1, -1)),
).map(
    lambda one: one._replace(
        records_bytes=-1 if one.records_bytes is None else sum(map(len, one.records_bytes)),
        records=one.records_bytes or (),
    )
)
endpoints = st.lists(st.builds(Endpoint, INT32, TEXT, INT32, st.none() | TEXT), max_size=2)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(20))
def test_the_request_is_read_as_the_generated_class_reads_it(version: int, seed: int) -> None:
    request = invent(FetchRequest, version, seed)
    assert isinstance(request, FetchRequest)
    call = decode_fetch_request(b"header" + request.encode(version), 6, version)
    state = request.replica_state
    assert call[:8] == (
        state.replica_id if version >= 15 else request.replica_id,
        state.replica_epoch,
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    )
    assert call.topics == [
        (
            topic.topic_id if version >= 13 else topic.topic,
            [tuple(getattr(partition, name) for name in partition.__slots__) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    assert call.forgotten == [
        (topic.topic_id if version >= 13 else topic.topic, topic.partitions) for topic in request.forgotten_topics_data
    ]
    assert (call.rack_id, call.cluster_id) == (request.rack_id, request.cluster_id)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_short_is_refused(version: int) -> None:
    frame = bytes(invent(FetchRequest, version, 1).encode(version))
    for size in range(len(frame)):
        with pytest.raises(DecodeError):
            decode_fetch_request(frame[:size], 0, version)


def generated_partition(one: Fetched, version: int) -> PartitionData:
    flexible = version >= 12
    epoch, end_offset = (flexible and one.diverging_epoch) or (-1, -1)
    leader_id, leader_epoch = (flexible and one.leader) or (-1, -1)
    snapshot_offset, snapshot_epoch = (flexible and one.snapshot_id) or (-1, -1)
    aborted = one.aborted
    return PartitionData(
        partition_index=one.partition,
        error_code=one.error_code,
        high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
        log_start_offset=one.log_start_offset,
        diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
        current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
        snapshot_id=SnapshotId(end_offset=snapshot_offset, epoch=snapshot_epoch),
        aborted_transactions=None
        if aborted is None
        else [AbortedTransaction(producer_id=producer, first_offset=first) for producer, first in aborted],
        preferred_read_replica=one.preferred_read_replica,
        records=None if one.records_bytes < 0 else b"".join(map(bytes, one.records)),
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(VERSIONS), INT32, INT32, INT16, INT32, endpoints)
def test_the_answer_is_written_as_the_generated_class_writes_it(
    data: st.DataObject,
    version: int,
    correlation_id: int,
    throttle_ms: int,
    error_code: int,
    session_id: int,
    nodes: list[Endpoint],
) -> None:
    topics = data.draw(
        st.lists(st.tuples(TOPIC_ID if version >= 13 else TEXT, st.lists(fetched, max_size=3)), max_size=3)
    )
    if version >= 11:
        topics = [(topic, [one._replace(preferred_read_replica=7) for one in ones]) for topic, ones in topics]
    generated = FetchResponse(
        throttle_time_ms=throttle_ms,
        error_code=error_code,
        session_id=session_id if version >= 7 else 0,
        responses=[
            FetchableTopicResponse(
                topic="" if isinstance(topic, bytes) else topic,
                topic_id=topic if isinstance(topic, bytes) else bytes(16),
                partitions=[generated_partition(one, version) for one in ones],
            )
            for topic, ones in topics
        ],
        node_endpoints=[
            NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in (nodes if version >= 16 else [])
        ],
    )
    total, parts = encode_fetch_response(
        version,
        correlation_id,
        topics,
        throttle_ms=throttle_ms,
        error_code=error_code,
        session_id=session_id,
        endpoints=nodes,
    )
    frame = b"".join(parts)
    assert len(frame) == total
    assert frame == response_frame(1, version, correlation_id, generated.encode(version))


def test_record_bytes_are_passed_on_as_they_were_given() -> None:
    records = [memoryview(b"batch one"), memoryview(b"batch two")]
    _, parts = encode_fetch_response(17, 1, [(bytes(16), [Fetched(0, records_bytes=18, records=records)])])
    assert parts[1] is records[0]
    assert parts[2] is records[1]
