from __future__ import annotations

from typing import Any

import pytest
from wire_script import Script

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.generated.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from penstock.protocol.generated.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from penstock.protocol.generated.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.api_versions_response import ApiVersionsResponse, FinalizedFeatureKey
from penstock.protocol.generated.end_txn_request import EndTxnRequest
from penstock.protocol.generated.end_txn_response import EndTxnResponse
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.generated.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.generated.txn_offset_commit_request import TxnOffsetCommitRequest
from penstock.protocol.generated.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Ask
from penstock.wire.errors import Disconnected
from penstock.wire.lanes import Identity
from penstock.wire.transactions import Committed, GroupMember, State, Transactions

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = {T0: Committed(7)}


class FakeCoordinator:
    """Answers for the transaction and the group coordinator; `refusals` are used up one by one."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.epoch = 0
        self.refusals: dict[type, list[int | KafkaError]] = {}
        self.script = Script(self.answer)

    def answer(self, ask: Ask) -> Any:
        message = ask.message
        refused = self.refusals.get(type(message), [])
        code = refused.pop(0) if refused else 0
        if isinstance(code, KafkaError):
            raise code
        match message:
            case FindCoordinatorRequest():
                found = Coordinator(key=message.coordinator_keys[0], node_id=1, host="h", port=1)
                return FindCoordinatorResponse(coordinators=[found])
            case ApiVersionsRequest():
                feature = FinalizedFeatureKey(name="transaction.version", max_version_level=self.version)
                return ApiVersionsResponse(finalized_features=[feature])
            case InitProducerIdRequest():
                return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)
            case AddPartitionsToTxnRequest():
                return _added(message, code)
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=code)
            case TxnOffsetCommitRequest():
                one = TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
                return TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(name="t", partitions=[one])])
            case EndTxnRequest():
                return self._end(code)
        raise AssertionError(ask)

    def _end(self, code: int) -> EndTxnResponse:
        if self.version < 2 or code:
            return EndTxnResponse(error_code=code)
        self.epoch += 1
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)

    def asked(self) -> list[str]:
        names = [type(message).__name__.removesuffix("Request") for message in self.script.asked]
        return [name for name in names if name not in ("FindCoordinator", "ApiVersions")]


def _added(message: AddPartitionsToTxnRequest, code: int) -> AddPartitionsToTxnResponse:
    topics = [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in message.v3_and_below_topics
    ]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)


def begun(version: int) -> tuple[FakeCoordinator, Transactions]:
    coordinator = FakeCoordinator(version)
    transactions = Transactions(Cluster([("seed", 1)]), "id")
    coordinator.script.run(transactions.init())
    transactions.begin()
    coordinator.script.asked.clear()
    return coordinator, transactions


def test_under_version_2_partitions_and_groups_are_added_by_what_is_sent_to_them() -> None:
    coordinator, transactions = begun(2)
    coordinator.script.run(transactions.add([T0, T1]))
    coordinator.script.run(transactions.send_offsets(GroupMember("g"), OFFSETS))
    identity = coordinator.script.run(transactions.end(commit=True))
    assert coordinator.asked() == ["TxnOffsetCommit", "EndTxn"]
    assert identity == Identity(7, 1)
    assert transactions.state is State.READY


def test_under_version_1_partitions_and_groups_are_added_by_requests_of_their_own_once() -> None:
    coordinator, transactions = begun(1)
    coordinator.script.run(transactions.add([T0]))
    coordinator.script.run(transactions.add([T0, T1]))
    coordinator.script.run(transactions.add([T0, T1]))
    coordinator.script.run(transactions.send_offsets(GroupMember("g"), OFFSETS))
    identity = coordinator.script.run(transactions.end(commit=True))
    assert coordinator.asked() == [
        "AddPartitionsToTxn",
        "AddPartitionsToTxn",
        "AddOffsetsToTxn",
        "TxnOffsetCommit",
        "EndTxn",
    ]
    assert identity == Identity(7, 0)


def test_an_empty_transaction_is_ended_without_asking_anybody() -> None:
    coordinator, transactions = begun(2)
    coordinator.script.run(transactions.end(commit=True))
    assert coordinator.asked() == []
    assert transactions.state is State.READY


def test_a_coordinator_that_is_still_busy_with_the_last_transaction_is_asked_again() -> None:
    coordinator, transactions = begun(1)
    coordinator.refusals[AddPartitionsToTxnRequest] = [ErrorCode.CONCURRENT_TRANSACTIONS]
    coordinator.script.run(transactions.add([T0]))
    assert coordinator.asked() == ["AddPartitionsToTxn", "AddPartitionsToTxn"]
    assert transactions.state is State.OPEN


def test_a_commit_whose_answer_was_lost_is_asked_for_again_with_the_same_epoch() -> None:
    coordinator, transactions = begun(2)
    coordinator.script.run(transactions.add([T0]))
    coordinator.refusals[EndTxnRequest] = [Disconnected("gone")]
    coordinator.script.run(transactions.end(commit=True))
    ends = [message for message in coordinator.script.asked if isinstance(message, EndTxnRequest)]
    assert [(end.producer_epoch, end.committed) for end in ends] == [(0, True), (0, True)]


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
def test_a_fenced_producer_can_do_nothing_any_more(code: ErrorCode) -> None:
    coordinator, transactions = begun(2)
    coordinator.script.run(transactions.add([T0]))
    coordinator.refusals[EndTxnRequest] = [code]
    with pytest.raises(KafkaError):
        coordinator.script.run(transactions.end(commit=True))
    assert transactions.state is State.FENCED
    for attempt in (transactions.begin, lambda: coordinator.script.run(transactions.init())):
        with pytest.raises(KafkaError) as refused:
            attempt()
        assert refused.value.code == ErrorCode.PRODUCER_FENCED


def test_offsets_of_a_member_that_the_group_left_behind_doom_the_transaction() -> None:
    coordinator, transactions = begun(2)
    coordinator.refusals[TxnOffsetCommitRequest] = [ErrorCode.ILLEGAL_GENERATION]
    with pytest.raises(KafkaError):
        coordinator.script.run(transactions.send_offsets(GroupMember("g", 3, "m"), OFFSETS))
    with pytest.raises(KafkaError, match="doomed"):
        coordinator.script.run(transactions.end(commit=True))
    coordinator.script.run(transactions.end(commit=False))
    assert transactions.state is State.READY


def test_a_doomed_transaction_can_only_be_aborted() -> None:
    coordinator, transactions = begun(2)
    coordinator.script.run(transactions.add([T0]))
    transactions.doom(KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, "from a leader"))
    with pytest.raises(KafkaError, match="from a leader"):
        transactions.expect_open()
    coordinator.script.run(transactions.end(commit=False))
    transactions.begin()


def test_a_transaction_that_the_coordinator_calls_abortable_is_doomed() -> None:
    coordinator, transactions = begun(2)
    coordinator.script.run(transactions.add([T0]))
    coordinator.refusals[EndTxnRequest] = [ErrorCode.TRANSACTION_ABORTABLE]
    with pytest.raises(KafkaError):
        coordinator.script.run(transactions.end(commit=True))
    assert transactions.state is State.DOOMED


def test_nothing_is_sent_outside_a_transaction() -> None:
    transactions = Transactions(Cluster([("seed", 1)]), "id")
    with pytest.raises(KafkaError, match="uninitialized"):
        transactions.begin()
