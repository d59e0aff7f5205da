"""Administration of transactions, from outside: list, describe, and end one that hangs in a partition."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.describe_producers_request import DescribeProducersRequest, TopicRequest
from penstock.protocol.generated.describe_producers_response import DescribeProducersResponse, ProducerState
from penstock.protocol.generated.describe_transactions_request import DescribeTransactionsRequest
from penstock.protocol.generated.describe_transactions_response import DescribeTransactionsResponse
from penstock.protocol.generated.describe_transactions_response import TransactionState as Described
from penstock.protocol.generated.list_transactions_request import ListTransactionsRequest
from penstock.protocol.generated.list_transactions_response import ListTransactionsResponse
from penstock.protocol.generated.list_transactions_response import TransactionState as Listed
from penstock.protocol.generated.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from penstock.protocol.generated.write_txn_markers_response import WriteTxnMarkersResponse
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.conversation import Conversation
from penstock.wire.routes import ask_coordinator, ask_every_broker, ask_leader


def list_transactions(cluster: Cluster, states: list[str]) -> Conversation[list[Listed]]:
    """The transactional ids of all brokers, those in one of the states where some are named."""
    replies = yield from ask_every_broker(
        cluster,
        ListTransactionsRequest(state_filters=states),
        ListTransactionsResponse,
        lambda reply: reply.error_code,
    )
    return [listed for reply in replies for listed in reply.transaction_states]


def describe_transaction(cluster: Cluster, transactional_id: str) -> Conversation[Described]:
    answer = yield from ask_coordinator(
        cluster,
        CoordinatorKind.TRANSACTION,
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        DescribeTransactionsResponse,
        lambda reply: reply.transaction_states[0].error_code,
    )
    return answer.transaction_states[0]


def open_transactions(cluster: Cluster, partition: TopicPartition) -> Conversation[list[ProducerState]]:
    """The producers with an open transaction in the partition, as its leader knows them."""
    topic = TopicRequest(name=partition.topic, partition_indexes=[partition.partition])
    answer = yield from ask_leader(
        cluster,
        partition,
        DescribeProducersRequest(topics=[topic]),
        DescribeProducersResponse,
        lambda reply: reply.topics[0].partitions[0].error_code,
    )
    return [one for one in answer.topics[0].partitions[0].active_producers if one.current_txn_start_offset >= 0]


def abort_in_partition(cluster: Cluster, partition: TopicPartition, producer: ProducerState) -> Conversation[None]:
    """Write the marker that aborts the producer's open transaction in this partition, whatever its coordinator says.

    A producer that never ended a transaction here has no coordinator epoch yet: 0 is below every real one.
    """
    topic = WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )
    answer = yield from ask_leader(
        cluster,
        partition,
        WriteTxnMarkersRequest(markers=[marker]),
        WriteTxnMarkersResponse,
        lambda reply: reply.markers[0].topics[0].partitions[0].error_code,
    )
    code = answer.markers[0].topics[0].partitions[0].error_code
    if code:
        raise KafkaError(ErrorCode(code), f"{partition}: the marker is refused")
