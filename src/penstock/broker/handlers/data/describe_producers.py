"""DescribeProducers 0 (KIP-664): the producers that a partition's log remembers."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.network.session import Session
from penstock.core.log.producers import Producer
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_producers_request import DescribeProducersRequest
from penstock.protocol.generated.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from penstock.records.batch import NO_SEQUENCE


def handle(session: Session, header: RequestHeader, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_describe(session, topic.name, index) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(session: Session, topic: str, index: int) -> PartitionResponse:
    try:
        if not session.allows(Operation.READ, Resource.TOPIC, topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = session.services.partitions.find(topic, index)
        partition.must_lead()
    except KafkaError as fault:
        return PartitionResponse(partition_index=index, error_code=fault.code, error_message=fault.message)
    producers = [_state(producer) for producer in partition.log.producers.entries.values()]
    return PartitionResponse(partition_index=index, active_producers=producers)


def _state(producer: Producer) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.txn_first_offset,
    )
