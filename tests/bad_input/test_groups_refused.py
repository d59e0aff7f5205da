"""Groups that are none, members nobody knows, offsets nobody can commit, metrics that explode."""

from __future__ import annotations

import os

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.alter_configs_request import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from penstock.protocol.generated.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.generated.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.incremental_alter_configs_request import (
    AlterableConfig as ChangedConfig,
)
from penstock.protocol.generated.incremental_alter_configs_request import (
    AlterConfigsResource as ChangedResource,
)
from penstock.protocol.generated.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from penstock.protocol.generated.push_telemetry_request import PushTelemetryRequest
from penstock.protocol.generated.push_telemetry_response import PushTelemetryResponse
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.records.batch import Codec
from tests.bad_input.bad_batches import CODECS, zeros
from tests.bad_input.raw_client import RawClient
from tests.bad_input.watched_broker import WatchedBroker

MIB = 1 << 20
TELEMETRY_BYTES_MAX = MIB
NOT_UTF_8 = "group-\udcff"


@pytest.fixture(autouse=True)
def coordinator(client: RawClient) -> None:
    """The topic of the groups is there and its coordinator has loaded."""
    found = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    assert found.coordinators[0].error_code == ErrorCode.NONE
    while client.call(HeartbeatRequest(group_id="g"), 4).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        pass


def join(group_id: str = "g", **how: object) -> JoinGroupRequest:
    fields: dict[str, object] = {
        "group_id": group_id,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 1_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"")],
    }
    return JoinGroupRequest(**(fields | how))  # type: ignore[arg-type]  # the fields of a request, by name


def commit(group_id: str = "g", partition: int = 0, topic: str = "plain", metadata: str = "") -> OffsetCommitRequest:
    one = OffsetCommitRequestPartition(partition_index=partition, committed_offset=1, committed_metadata=metadata)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[one])]
    return OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=topics)


def sync(**how: object) -> SyncGroupRequest:
    fields: dict[str, object] = {"group_id": "g", "protocol_type": "consumer", "protocol_name": "range"}
    return SyncGroupRequest(**(fields | how))  # type: ignore[arg-type]  # the fields of a request, by name


@pytest.mark.parametrize("group_id", ["", NOT_UTF_8])
def test_a_group_id_that_is_none(client: RawClient, group_id: str) -> None:
    assert client.call(join(group_id), 7).error_code == ErrorCode.INVALID_GROUP_ID
    assert client.call(HeartbeatRequest(group_id=group_id), 4).error_code == ErrorCode.INVALID_GROUP_ID
    assert client.call(sync(group_id=group_id), 5).error_code == ErrorCode.INVALID_GROUP_ID
    leaving = LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id="m")])
    assert client.call(leaving, 5).error_code == ErrorCode.INVALID_GROUP_ID
    assert client.call(DeleteGroupsRequest(groups_names=[group_id]), 2).results[0].error_code in (
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    )


def test_group_ids_that_are_not_utf_8_do_not_alias(client: RawClient) -> None:
    """Kafka reads both as the same replacement character; here neither exists and both keep their bytes."""
    ids = ["group-\udcff", "group-\udcfe"]
    described = client.call(DescribeGroupsRequest(groups=ids), 5).groups
    assert [(one.group_id, one.error_code) for one in described] == [(one, ErrorCode.INVALID_GROUP_ID) for one in ids]
    found = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=ids), 4).coordinators
    assert [(one.key, one.error_code) for one in found] == [(one, ErrorCode.INVALID_GROUP_ID) for one in ids]
    assert client.call(commit(ids[0]), 9).topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID
    groups = [OffsetFetchRequestGroup(group_id=one, topics=None) for one in ids]
    fetched = client.call(OffsetFetchRequest(groups=groups), 8).groups
    assert [one.error_code for one in fetched] == [ErrorCode.INVALID_GROUP_ID] * 2


def test_a_transactional_id_that_is_not_utf_8_is_refused(client: RawClient) -> None:
    answer = client.call(InitProducerIdRequest(transactional_id="t-\udcff", transaction_timeout_ms=1000), 5)
    assert answer.error_code != ErrorCode.NONE


def test_a_coordinator_of_a_kind_that_does_not_exist(client: RawClient) -> None:
    for kind in (-1, 3, 127):
        found = client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]), 6)
        assert found.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


def test_a_member_that_nobody_knows(client: RawClient) -> None:
    assert client.call(join(member_id="nobody"), 7).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert client.call(HeartbeatRequest(group_id="g", member_id="nobody"), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert client.call(sync(member_id="x"), 5).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    left = client.call(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="nobody")]), 5)
    assert ErrorCode.UNKNOWN_MEMBER_ID in (left.error_code, *(one.error_code for one in left.members))


@pytest.mark.parametrize("timeout_ms", [0, -1, 5_999, 1_800_001, 2**31 - 1, -(2**31)])
def test_a_session_timeout_out_of_bounds(client: RawClient, timeout_ms: int) -> None:
    assert client.call(join(session_timeout_ms=timeout_ms), 7).error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_a_member_without_protocols(client: RawClient) -> None:
    assert client.call(join(protocols=[]), 7).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_a_sync_that_does_not_name_its_protocol(client: RawClient, missing: str) -> None:
    """Version 5 must; before, there was no room for it, and the member is looked for."""
    request = sync(**{missing: None})
    assert client.call(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert client.call(request, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_subscription_of_two_megabytes(client: RawClient) -> None:
    large = JoinGroupRequestProtocol(name="range", metadata=bytes(2 * MIB))
    assert client.call(join(protocols=[large]), 7).error_code == ErrorCode.INVALID_REQUEST


def test_a_member_whose_client_id_is_as_long_as_it_can_be(client: RawClient) -> None:
    """A member's id begins with the client's."""
    for client_id in ("c" * 32_767, "\udcff" * 32_767, "ß" * 16_383):
        answer = client.call(join(f"long-{os.getpid()}"), 7, client_id=client_id)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_static_member_whose_name_is_as_long_as_it_can_be(client: RawClient) -> None:
    answer = client.call(join(f"static-{os.getpid()}", group_instance_id="i" * 32_767), 7)
    assert answer.error_code == ErrorCode.NONE
    assert answer.member_id.startswith("iii")


@pytest.mark.parametrize(("topic", "partition"), [("plain", 1), ("plain", -1), ("nowhere", 0), ("a\udcff", 0), ("", 0)])
def test_an_offset_of_an_unknown_partition(client: RawClient, topic: str, partition: int) -> None:
    answer = client.call(commit(topic=topic, partition=partition), 9)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offset_metadata_that_is_too_large(client: RawClient) -> None:
    answer = client.call(commit(metadata="m" * 4_097), 9)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_an_offset_of_an_unknown_generation(client: RawClient) -> None:
    request = commit("nobody-is-here")
    request.generation_id_or_member_epoch, request.member_id = 5, "m"
    assert client.call(request, 8).topics[0].partitions[0].error_code == ErrorCode.ILLEGAL_GENERATION


def subscribed(client: RawClient) -> PushTelemetryRequest:
    """A push that its subscription allows, still without metrics."""
    told = client.call(GetTelemetrySubscriptionsRequest(), 0)
    assert told.error_code == ErrorCode.NONE
    return PushTelemetryRequest(
        client_instance_id=told.client_instance_id, subscription_id=told.subscription_id, metrics=b""
    )


@pytest.mark.parametrize("codec", [one for one in CODECS if one is not Codec.SNAPPY])
def test_metrics_that_explode(broker: WatchedBroker, client: RawClient, codec: Codec) -> None:
    push = subscribed(client)
    push.compression_type, push.metrics = codec, zeros(codec, 64 * MIB)
    assert len(push.metrics) <= TELEMETRY_BYTES_MAX
    before_bytes = broker.rss_bytes
    answer: PushTelemetryResponse = client.call(push, 0)
    assert answer.error_code == ErrorCode.TELEMETRY_TOO_LARGE
    assert broker.rss_bytes - before_bytes < 16 * MIB


def test_metrics_that_are_too_large_as_they_are(client: RawClient) -> None:
    push = subscribed(client)
    push.metrics = bytes(TELEMETRY_BYTES_MAX + 1)
    assert client.call(push, 0).error_code == ErrorCode.TELEMETRY_TOO_LARGE


def test_metrics_that_do_not_expand(client: RawClient) -> None:
    push = subscribed(client)
    push.compression_type, push.metrics = Codec.GZIP, b"garbage"
    assert client.call(push, 0).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 127, -1])
def test_metrics_in_a_codec_that_does_not_exist(client: RawClient, codec: int) -> None:
    push = subscribed(client)
    push.compression_type = codec
    assert client.call(push, 0).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_metrics_of_nobody(client: RawClient) -> None:
    assert client.call(PushTelemetryRequest(metrics=b""), 0).error_code == ErrorCode.INVALID_REQUEST
    stranger = PushTelemetryRequest(client_instance_id=b"s" * 16, subscription_id=1, metrics=b"")
    assert client.call(stranger, 0).error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID


LONG = "\udcff" * 32_000


@pytest.mark.parametrize("kind", [2, 4, 8, 16, 32, 0, -1, 99])
@pytest.mark.parametrize("name", ["", "1", "plain", LONG], ids=["empty", "number", "topic", "long"])
def test_configurations_nobody_has_are_refused_with_an_answer(client: RawClient, kind: int, name: str) -> None:
    for key, value in ((LONG, LONG), ("", ""), ("cleanup.policy", LONG), ("interval.ms", "x" * 30_000), ("match", "(")):
        config = AlterableConfig(name=key, value=value)
        old = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
        answer = client.call(AlterConfigsRequest(resources=[old], validate_only=True), 2)
        assert answer.responses[0].error_code != ErrorCode.UNKNOWN_SERVER_ERROR
        for operation in (0, 1, 2, 3, 4, -1):
            changed = ChangedConfig(name=key, config_operation=operation, value=value)
            new = ChangedResource(resource_type=kind, resource_name=name, configs=[changed])
            told = client.call(IncrementalAlterConfigsRequest(resources=[new], validate_only=True), 1)
            assert told.responses[0].error_code != ErrorCode.UNKNOWN_SERVER_ERROR
