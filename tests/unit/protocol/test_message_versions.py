"""What a message does with a value that a version cannot carry."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.protocol.generated.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.generated.fetch_request import FetchRequest, ReplicaState
from penstock.protocol.generated.list_offsets_request import ListOffsetsRequest
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequest
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord


def test_an_ignorable_field_is_dropped() -> None:
    topic = CreatableTopicResult(name="t", topic_id=b"x" * 16)
    decoded = CreateTopicsResponse.decode(CreateTopicsResponse(topics=[topic]).encode(6), 6)
    assert decoded.topics[0].topic_id == bytes(16)


def test_a_field_that_may_not_be_ignored_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"ListOffsetsRequest.isolation_level is set but version 1") as refusal:
        ListOffsetsRequest(isolation_level=1).encode(1)
    assert refusal.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_a_tagged_structure_that_may_not_be_ignored_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"FetchRequest.replica_state is set but version 14"):
        FetchRequest(replica_state=ReplicaState(replica_id=1)).encode(14)


def test_null_is_refused_where_the_version_has_no_null() -> None:
    assert MetadataRequest(topics=None).encode(1) == b"\xff\xff\xff\xff"
    with pytest.raises(KafkaError, match=r"MetadataRequest.topics is null, which version 0 cannot say"):
        MetadataRequest(topics=None).encode(0)


@pytest.mark.parametrize("version", [0, 11])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(KafkaError, match="OffsetFetchRequest has versions 1 to 10"):
        OffsetFetchRequest().encode(version)
    with pytest.raises(KafkaError, match="OffsetFetchRequest has versions 1 to 10"):
        OffsetFetchRequest.decode(b"", version)


def test_a_tagged_field_with_its_default_is_not_written() -> None:
    assert PartitionChangeRecord().encode(0) == b"\xff\xff\xff\xff" + bytes(16) + b"\0"
    assert PartitionChangeRecord(isr=[]).encode(0)[20:] == b"\x01\x00\x01\x01"


def test_messages_compare_and_print_by_their_fields() -> None:
    assert FetchRequest() == FetchRequest()
    assert FetchRequest(rack_id="a") != FetchRequest(rack_id="b")
    assert repr(ReplicaState(replica_id=1)) == "ReplicaState(replica_id=1, replica_epoch=-1)"


def test_defaults_are_not_shared() -> None:
    first, second = FetchRequest(), FetchRequest()
    first.topics.append(None)  # type: ignore[arg-type]  # what no caller should do
    first.replica_state.replica_id = 5
    assert (second.topics, second.replica_state) == ([], ReplicaState())
