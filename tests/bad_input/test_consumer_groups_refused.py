"""Heartbeats of consumer groups that are none: the codes that Apache Kafka answers with."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.generated.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.list_transactions_request import ListTransactionsRequest
from penstock.protocol.generated.offset_commit_request import OffsetCommitRequest
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.bad_input.raw_client import RawClient

NOT_UTF_8 = "group-\udcff"


@pytest.fixture(autouse=True)
def coordinator(client: RawClient) -> None:
    """The topic of the groups is there and its coordinator has loaded."""
    found = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    assert found.coordinators[0].error_code == ErrorCode.NONE
    while client.call(HeartbeatRequest(group_id="g"), 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass


def beat(client: RawClient, version: int = 1, **how: object) -> ErrorCode:
    """A heartbeat that joins, but for what is said otherwise."""
    fields: dict[str, object] = {
        "group_id": "refused",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1_000,
        "subscribed_topic_names": ["plain"],
        "topic_partitions": [],
    }
    request = ConsumerGroupHeartbeatRequest(**(fields | how))  # type: ignore[arg-type]  # the fields of a request
    return ErrorCode(client.call(request, version).error_code)


@pytest.mark.parametrize(
    "how",
    [
        {"group_id": ""},
        {"group_id": " "},
        {"member_id": ""},
        {"member_id": "", "member_epoch": 1, "version": 0},
        {"member_id": "", "member_epoch": -1, "version": 0},
        {"instance_id": ""},
        {"rack_id": " "},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": [TopicPartitions(topic_id=bytes(16), partitions=[0])]},
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": ["t" * 249] * 10_000},
        {"member_epoch": -2},
        {"member_epoch": -3},
        {"member_epoch": -(2**31)},
    ],
)
def test_a_heartbeat_that_does_not_say_what_it_has_to(client: RawClient, how: dict[str, object]) -> None:
    assert beat(client, **how) is ErrorCode.INVALID_REQUEST  # type: ignore[arg-type]  # the fields of a request


def test_a_heartbeat_for_what_is_not_there(client: RawClient) -> None:
    assert beat(client, group_id=NOT_UTF_8) is ErrorCode.INVALID_GROUP_ID
    assert beat(client, server_assignor="own") is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert beat(client, member_epoch=1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert beat(client, member_epoch=-1) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("regex", ["(", "a{1001}", "\\p{None}", "(?<name", "[z-a]"])
def test_an_expression_that_is_none(client: RawClient, regex: str) -> None:
    said = beat(client, subscribed_topic_names=None, subscribed_topic_regex=regex)
    assert said is ErrorCode.INVALID_REGULAR_EXPRESSION
    listed = client.call(ListTransactionsRequest(transactional_id_pattern=regex), 2)
    assert listed.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_expression_that_would_hold_others_for_ever(client: RawClient) -> None:
    assert beat(client, group_id="slow", subscribed_topic_names=None, subscribed_topic_regex="(a+)+$") is ErrorCode.NONE
    assert beat(client, group_id="slow", member_epoch=-1) is ErrorCode.NONE


def test_members_and_epochs_that_nobody_knows(client: RawClient) -> None:
    assert beat(client, group_id="known") is ErrorCode.NONE
    assert beat(client, group_id="known", member_id="other", member_epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(client, group_id="known", member_epoch=5) is ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(client, group_id="known", member_epoch=2**31 - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    static = {"group_id": "known", "instance_id": "i"}
    assert beat(client, **static, member_epoch=-2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(client, **static, member_id="one") is ErrorCode.NONE
    assert beat(client, **static, member_id="two") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert beat(client, **static, member_id="two", member_epoch=2) is ErrorCode.FENCED_INSTANCE_ID
    commit = OffsetCommitRequest(group_id="known", member_id="m", generation_id_or_member_epoch=9)
    client.call(commit, 9)
    asked = OffsetFetchRequestGroup(group_id="known", member_id="m", member_epoch=9, topics=None)
    fetched = client.call(OffsetFetchRequest(groups=[asked]), 9)
    assert fetched.groups[0].error_code == ErrorCode.STALE_MEMBER_EPOCH
    assert beat(client, group_id="known", member_epoch=-1) is ErrorCode.NONE
    assert beat(client, **static, member_id="one", member_epoch=-1) is ErrorCode.NONE


def test_a_classic_member_with_metadata_that_is_none_is_kept_out(client: RawClient) -> None:
    assert beat(client, group_id="mixed") is ErrorCode.NONE
    for metadata in (b"", b"\0", b"\0\1\xff\xff\xff\xff", b"\x7f\xff" + bytes(4)):
        request = JoinGroupRequest(
            group_id="mixed",
            member_id="classic",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=1_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answered = client.call(request, 9).error_code
        assert answered in (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.NONE)
    assert beat(client, group_id="mixed", member_epoch=-1) is ErrorCode.NONE


def test_a_description_of_what_is_no_consumer_group(client: RawClient) -> None:
    described = client.call(ConsumerGroupDescribeRequest(group_ids=["nobody", NOT_UTF_8, ""]), 1).groups
    codes = [group.error_code for group in described]
    assert codes[:2] == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID]
    assert codes[2] in (ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND)
