"""The hand-written answer to ShareFetch has the generated message's bytes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.slices import Slice
from penstock.protocol.frames import response_frame
from penstock.protocol.generated import share_fetch_response as generated
from penstock.protocol.hot_parts import Endpoint, LeaderHint
from penstock.protocol.hot_share_fetch import SharedRecords, encode_share_fetch_response
from penstock.sim.disk import SimDisk

TEXT = st.none() | st.text(max_size=20)
ACQUIRED = st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 100))
PARTITION = st.builds(
    SharedRecords,
    st.integers(0, 1000),
    st.integers(-1, 133),
    TEXT,
    st.integers(-1, 133),
    TEXT,
    st.builds(LeaderHint, st.integers(-1, 9), st.integers(-1, 9)),
    st.lists(st.integers(1, 300), max_size=3),
    st.lists(ACQUIRED, max_size=3),
)
TOPICS = st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.lists(PARTITION, max_size=3)), max_size=3)
ENDPOINTS = st.lists(
    st.builds(Endpoint, st.integers(0, 9), st.text(max_size=9), st.integers(1, 65535), TEXT), max_size=2
)


@pytest.mark.parametrize("version", [1, 2])
@settings(deadline=None)
@given(topics=TOPICS, code=st.integers(-1, 133), message=TEXT, lock_ms=st.integers(0, 60_000), endpoints=ENDPOINTS)
def test_the_same_bytes(version, topics, code, message, lock_ms, endpoints):
    file = SimDisk(Random(1)).open("log", create=True)
    file.write(bytes(range(256)) * 8)
    sent = [(topic, [_in_file(one, file) for one in partitions]) for topic, partitions in topics]
    parts = encode_share_fetch_response(
        7, sent, error_code=code, error_message=message, lock_ms=lock_ms, endpoints=endpoints
    )
    frame = b"".join(part.read() if isinstance(part, Slice) else bytes(part) for part in parts)
    response = generated.ShareFetchResponse(
        error_code=code,
        error_message=message,
        acquisition_lock_timeout_ms=lock_ms,
        responses=[_topic(topic, partitions) for topic, partitions in sent],
        node_endpoints=[
            generated.NodeEndpoint(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
            for one in endpoints
        ],
    )
    assert frame == bytes(response_frame(78, version, 7, response.encode(version)))


def _in_file(one: SharedRecords, file) -> SharedRecords:
    return one._replace(slices=[Slice(file, length, length) for length in one.slices])


def _topic(topic: bytes, partitions: list[SharedRecords]) -> generated.ShareFetchableTopicResponse:
    return generated.ShareFetchableTopicResponse(topic_id=topic, partitions=[_partition(one) for one in partitions])


def _partition(one: SharedRecords) -> generated.PartitionData:
    leader = generated.LeaderIdAndEpoch(leader_id=one.leader.leader_id, leader_epoch=one.leader.leader_epoch)
    return generated.PartitionData(
        partition_index=one.partition,
        error_code=one.error_code,
        error_message=one.error_message,
        acknowledge_error_code=one.acknowledge_error_code,
        acknowledge_error_message=one.acknowledge_error_message,
        current_leader=leader,
        records=b"".join(piece.read() for piece in one.slices),
        acquired_records=[
            generated.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in one.acquired
        ],
    )
