"""The hand-written Produce codec against the generated one, in every version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invention import invent

from penstock.base.errors import DecodeError
from penstock.protocol.frames import response_frame
from penstock.protocol.generated.produce_request import ProduceRequest
from penstock.protocol.generated.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.protocol.hot_parts import Endpoint, LeaderHint
from penstock.protocol.hot_produce import ProduceAnswer, decode_produce_request, encode_produce_response

VERSIONS = range(3, 14)
INT16, INT32, INT64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)
TOPIC_ID = st.binary(min_size=16, max_size=16)

answers = st.builds(
    ProduceAnswer,
    INT32,
    INT16,
    INT64,
    INT64,
    INT64,
    st.lists(st.tuples(INT32, st.none() | TEXT), max_size=2),
    st.none() | TEXT,
    st.none() | st.builds(LeaderHint, INT32, INT32) | st.just(LeaderHint()),
)
endpoints = st.lists(st.builds(Endpoint, INT32, TEXT, INT32, st.none() | TEXT), max_size=2)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(20))
def test_the_request_is_read_as_the_generated_class_reads_it(version: int, seed: int) -> None:
    request = invent(ProduceRequest, version, seed)
    assert isinstance(request, ProduceRequest)
    frame = b"header" + request.encode(version)
    call = decode_produce_request(frame, 6, version)
    assert (call.transactional_id, call.acks, call.timeout_ms) == (
        request.transactional_id,
        request.acks,
        request.timeout_ms,
    )
    assert [
        (topic, [(index, None if size < 0 else frame[start : start + size]) for index, start, size in partitions])
        for topic, partitions in call.topics
    ] == [
        (topic.topic_id if version >= 13 else topic.name, [(p.index, p.records) for p in topic.partition_data])
        for topic in request.topic_data
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_short_is_refused(version: int) -> None:
    frame = bytes(invent(ProduceRequest, version, 1).encode(version))
    for size in range(len(frame)):
        with pytest.raises(DecodeError):
            decode_produce_request(frame[:size], 0, version)


def generated_answer(answer: ProduceAnswer, version: int) -> PartitionProduceResponse:
    leader = answer.leader if answer.leader and version >= 10 else LeaderHint()
    return PartitionProduceResponse(
        index=answer.partition,
        error_code=answer.error_code,
        base_offset=answer.base_offset,
        log_append_time_ms=answer.append_time_ms,
        log_start_offset=answer.log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in answer.record_errors
        ],
        error_message=answer.error_message,
        current_leader=LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch),
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(VERSIONS), INT32, INT32, endpoints)
def test_the_answer_is_written_as_the_generated_class_writes_it(
    data: st.DataObject, version: int, correlation_id: int, throttle_ms: int, nodes: list[Endpoint]
) -> None:
    topics = data.draw(
        st.lists(st.tuples(TOPIC_ID if version >= 13 else TEXT, st.lists(answers, max_size=3)), max_size=3)
    )
    generated = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="" if isinstance(topic, bytes) else topic,
                topic_id=topic if isinstance(topic, bytes) else bytes(16),
                partition_responses=[generated_answer(answer, version) for answer in partitions],
            )
            for topic, partitions in topics
        ],
        throttle_time_ms=throttle_ms,
        node_endpoints=[
            NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in (nodes if version >= 10 else [])
        ],
    )
    frame = encode_produce_response(version, correlation_id, topics, throttle_ms, nodes)
    assert frame == response_frame(0, version, correlation_id, generated.encode(version))
