"""Names that are none, partitions that are not there, epochs of another leader, replicas that are nobody."""

from __future__ import annotations

import os

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.generated.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from penstock.protocol.generated.fetch_request import FetchRequest, FetchTopic
from penstock.protocol.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.protocol.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.protocol.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.bad_input.raw_client import RawClient, create_topic, fetch_request, one_batch, produce

ILLEGAL = [
    pytest.param("", id="empty"),
    pytest.param(".", id="dot"),
    pytest.param("..", id="dot-dot"),
    pytest.param("x" * 250, id="250-characters"),
    pytest.param("x" * 32_767, id="32767-characters"),
    pytest.param("a/b", id="slash"),
    pytest.param("../../etc/passwd", id="path"),
    pytest.param("a b", id="space"),
    pytest.param("a\x00b", id="zero-byte"),
    pytest.param("a\nb", id="newline"),
    pytest.param("ä", id="umlaut"),
    pytest.param("a\udcff", id="not-utf-8"),
    pytest.param("\udcff" * 249, id="249-bytes-not-utf-8"),
    pytest.param("\udcff" * 32_767, id="32767-bytes-not-utf-8"),
]


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_topic_name_is_refused_everywhere(client: RawClient, name: str) -> None:
    assert create_topic(client, name) == ErrorCode.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    assert client.call(asked, 9).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert produce(client, name, one_batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    fetched = client.call(fetch_request(name, 0), 12).responses[0]
    assert (fetched.topic, fetched.partitions[0].error_code) == (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_topic_name_that_stands_twice_is_answered_too(client: RawClient, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = client.call(CreateTopicsRequest(topics=[topic, topic], timeout_ms=1000), 7)
    assert [one.error_code for one in answer.topics] == [ErrorCode.INVALID_REQUEST]
    deleted = client.call(DeleteTopicsRequest(topic_names=[name, name], timeout_ms=1000), 5)
    assert {one.error_code for one in deleted.responses} <= {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_names_that_are_not_utf_8_do_not_alias(client: RawClient) -> None:
    """Two different wrong names stay two, in the same bytes as they came."""
    names = ["bad-\udcff", "bad-\udcfe"]
    answer = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names]), 9)
    assert [topic.name for topic in answer.topics] == names


def test_names_that_differ_in_dot_and_underscore_only_collide(client: RawClient) -> None:
    name = f"a.b-{os.getpid()}"
    assert create_topic(client, name) == ErrorCode.NONE
    assert create_topic(client, name.replace(".", "_")) == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("partition", [1, -1, 2**31 - 1, -(2**31)])
def test_a_partition_that_is_not_there(client: RawClient, partition: int) -> None:
    answer = produce(client, "plain", one_batch(), partition=partition)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    listed = client.call(ListOffsetsRequest(topics=[ListOffsetsTopic(name="plain", partitions=[asked])]), 7)
    assert listed.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_id_that_nobody_has(client: RawClient) -> None:
    data = [PartitionProduceData(index=0, records=bytes(one_batch()))]
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(topic_id=b"i" * 16, partition_data=data)]
    )
    assert client.call(request, 13).responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    fetch = fetch_request("", 0)
    fetch.topics = [FetchTopic(topic_id=b"i" * 16, partitions=fetch.topics[0].partitions)]
    assert client.call(fetch, 16).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(1_000, ErrorCode.UNKNOWN_LEADER_EPOCH), (-7, ErrorCode.FENCED_LEADER_EPOCH), (-1, ErrorCode.NONE)],
)
def test_the_epoch_of_another_leader(client: RawClient, epoch: int, code: ErrorCode) -> None:
    produce(client, "plain", one_batch())
    fetched = client.call(fetch_request("plain", 0, leader_epoch=epoch), 12).responses[0].partitions[0]
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=epoch, timestamp=-1)
    listed = client.call(ListOffsetsRequest(topics=[ListOffsetsTopic(name="plain", partitions=[asked])]), 7)
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    ended = client.call(
        OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic="plain", partitions=[wanted])]), 4
    )
    assert fetched.error_code == code
    assert listed.topics[0].partitions[0].error_code == code
    assert ended.topics[0].partitions[0].error_code == code


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])
def test_an_offset_out_of_range(client: RawClient, offset: int) -> None:
    fetched = client.call(fetch_request("plain", offset), 12).responses[0].partitions[0]
    assert fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("replica_id", [0, 1, 7, 2**31 - 1])
def test_a_client_that_says_it_is_a_follower_gets_no_data(client: RawClient, replica_id: int) -> None:
    produce(client, "plain", one_batch())
    fetched = client.call(fetch_request("plain", 0, replica_id=replica_id), 12).responses[0].partitions[0]
    assert fetched.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not fetched.records


def test_limits_that_make_no_sense_are_answered(client: RawClient) -> None:
    produce(client, "plain", one_batch())
    for size in (0, -1, -(2**31), 2**31 - 1):
        request = fetch_request("plain", 0)
        request.max_bytes = request.topics[0].partitions[0].partition_max_bytes = size
        request.min_bytes, request.max_wait_ms = size, min(size, 1)
        assert client.call(request, 12).responses[0].partitions[0].error_code == ErrorCode.NONE


def test_a_fetch_session_that_nobody_opened(client: RawClient) -> None:
    request = fetch_request("plain", 0)
    request.session_id, request.session_epoch = 987_654, 3
    assert client.call(request, 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_partition_named_twice_is_answered(client: RawClient) -> None:
    produce(client, "plain", one_batch())
    twice = fetch_request("plain", 0)
    twice.topics[0].partitions *= 2
    assert client.call(twice, 12).responses[0].partitions[0].error_code == ErrorCode.NONE
    asked = [ListOffsetsPartition(partition_index=0, timestamp=-1)] * 2
    listed = client.call(ListOffsetsRequest(topics=[ListOffsetsTopic(name="plain", partitions=asked)]), 7)
    assert [one.error_code for one in listed.topics[0].partitions] == [ErrorCode.INVALID_REQUEST] * 2
    batches = [PartitionProduceData(index=0, records=bytes(one_batch())) for _ in range(2)]
    sent = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="plain", partition_data=batches)])
    told = client.call(sent, 9).responses[0].partition_responses
    assert [one.error_code for one in told] == [ErrorCode.NONE] * 2
    assert told[1].base_offset == told[0].base_offset + 1


def test_a_cursor_before_the_first_partition_is_refused(client: RawClient) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name="plain")], cursor=Cursor(topic_name="plain", partition_index=-1)
    )
    assert client.call(request, 0).topics[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_before_its_version(client: RawClient, version: int) -> None:
    topics = [MetadataRequestTopic(name=None, topic_id=b"i" * 16), MetadataRequestTopic(name="plain")]
    answer = client.call(MetadataRequest(topics=topics), version)
    assert [one.error_code for one in answer.topics] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", [1, 2, 3, 4, 10])
def test_offsets_are_listed_in_versions_with_and_without_leader_epochs(client: RawClient, version: int) -> None:
    produce(client, "plain", one_batch())
    asked = ListOffsetsPartition(partition_index=0, timestamp=-2)
    listed = client.call(ListOffsetsRequest(topics=[ListOffsetsTopic(name="plain", partitions=[asked])]), version)
    assert (listed.topics[0].partitions[0].error_code, listed.topics[0].partitions[0].offset) == (ErrorCode.NONE, 0)


def test_an_empty_fetch_is_answered_at_once(client: RawClient) -> None:
    assert client.call(FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1), 12).responses == []
