"""Share groups that are none, members nobody knows, offsets nobody can have; and state nobody may write."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated import alter_share_group_offsets_request as alter
from penstock.protocol.generated import delete_share_group_offsets_request as delete
from penstock.protocol.generated import describe_share_group_offsets_request as describe
from penstock.protocol.generated import write_share_group_state_request as write
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tests.bad_input.raw_client import RawClient

NOT_UTF_8 = "group-\udcff"
SOME_TOPIC = bytes(range(16))


@pytest.fixture(autouse=True)
def coordinator(client: RawClient) -> None:
    """The topic of the groups is there and its coordinator has loaded."""
    found = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    assert found.coordinators[0].error_code == ErrorCode.NONE
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    while client.call(heartbeat(member_epoch=5), 1).error_code == loading:
        pass


def heartbeat(
    group_id: str = "nobody", member_id: str = "m", member_epoch: int = 0, topics: list[str] | None = None
) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        rack_id=None,
        subscribed_topic_names=topics,
    )


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        pytest.param(heartbeat(group_id="", topics=["t"]), ErrorCode.INVALID_REQUEST, id="no-group"),
        pytest.param(heartbeat(group_id=NOT_UTF_8, topics=["t"]), ErrorCode.INVALID_GROUP_ID, id="group-not-utf-8"),
        pytest.param(heartbeat(member_id="", topics=["t"]), ErrorCode.INVALID_REQUEST, id="no-member"),
        pytest.param(heartbeat(member_id=NOT_UTF_8, topics=["t"]), ErrorCode.INVALID_REQUEST, id="member-not-utf-8"),
        pytest.param(heartbeat(topics=[NOT_UTF_8]), ErrorCode.INVALID_REQUEST, id="topic-not-utf-8"),
        pytest.param(heartbeat(), ErrorCode.INVALID_REQUEST, id="no-subscription"),
        pytest.param(heartbeat(member_epoch=-2), ErrorCode.INVALID_REQUEST, id="epoch-below-minus-one"),
        pytest.param(heartbeat(member_epoch=-(2**31)), ErrorCode.INVALID_REQUEST, id="epoch-smallest"),
        pytest.param(heartbeat(member_epoch=2**31 - 1), ErrorCode.GROUP_ID_NOT_FOUND, id="group-nobody-knows"),
        pytest.param(heartbeat(member_epoch=-1), ErrorCode.GROUP_ID_NOT_FOUND, id="leaves-what-is-not-there"),
    ],
)
def test_a_heartbeat(client: RawClient, request_: ShareGroupHeartbeatRequest, code: ErrorCode) -> None:
    assert client.call(request_, 1).error_code == code


def test_a_group_that_is_described_and_is_not_there(client: RawClient) -> None:
    answer = client.call(ShareGroupDescribeRequest(group_ids=["nobody", "", NOT_UTF_8, "nobody"]), 1)
    codes = [group.error_code for group in answer.groups]
    missing = ErrorCode.GROUP_ID_NOT_FOUND
    assert codes == [missing, missing, ErrorCode.INVALID_GROUP_ID, missing]


def test_offsets_of_a_group_that_is_not_there(client: RawClient) -> None:
    asked = [describe.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in ("x", NOT_UTF_8)]
    answer = client.call(describe.DescribeShareGroupOffsetsRequest(groups=asked), 1)
    codes = [group.error_code for group in answer.groups]
    assert codes == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID]
    topic = delete.DeleteShareGroupOffsetsRequestTopic(topic_name="plain")
    request = delete.DeleteShareGroupOffsetsRequest(group_id="x", topics=[topic])
    assert client.call(request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    for group_id in ("", NOT_UTF_8):
        request.group_id = group_id
        assert client.call(request, 0).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "code"),
    [
        ("no-such-topic", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("plain", -1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("plain", 2**31 - 1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("plain", 0, -2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_offset_where_none_can_be(
    client: RawClient, topic: str, partition: int, offset: int, code: ErrorCode
) -> None:
    one = alter.AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
    named = alter.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[one])
    answer = client.call(alter.AlterShareGroupOffsetsRequest(group_id="fresh", topics=[named]), 0)
    assert answer.error_code == ErrorCode.NONE
    assert answer.responses[0].partitions[0].error_code == code
    described = client.call(ShareGroupDescribeRequest(group_ids=["fresh"]), 1).groups[0]
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND, "nothing came to be"


def test_state_of_a_partition_that_nobody_began(client: RawClient) -> None:
    key = "g:AAECAwQFBgcICQoLDA0ODw:0"
    client.call(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), 6)
    batch = write.StateBatch(first_offset=2**63 - 1, last_offset=-(2**63), delivery_state=-128, delivery_count=-1)
    one = write.PartitionData(partition=0, state_batches=[batch])
    topic = write.WriteStateData(topic_id=SOME_TOPIC, partitions=[one])
    codes = {ErrorCode.INVALID_REQUEST, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    answer = client.call(write.WriteShareGroupStateRequest(group_id="g", topics=[topic]), 1)
    assert answer.results[0].partitions[0].error_code in codes
