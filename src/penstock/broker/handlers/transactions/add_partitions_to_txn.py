"""AddPartitionsToTxn 0-5 (KIP-98, KIP-890): which partitions a transaction writes to.

Up to version 3 from clients, one transaction, all of its partitions or none. From version 4 on from the leaders of
partitions, several transactions: to verify what a client has added, or to add what it writes to
(transaction.version 2).
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import INTERNAL_TOPICS, TopicPartition
from penstock.broker.handlers.transactions.refusing import fenced
from penstock.broker.network.session import Session
from penstock.broker.transactions import Transactions
from penstock.broker.verification import VERSION_2
from penstock.core.security.acl import Operation, Resource
from penstock.core.transactions.adding import Enlist, Errors
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.generated.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

_FENCED_FROM = 2
_BROKERS_FROM = 4


async def handle(
    session: Session, header: RequestHeader, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    if header.api_version < _BROKERS_FROM:
        return await _for_client(session, header, request)
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = []
    for transaction in request.transactions:
        errors = await _for_leader(session, transaction)
        results.append(
            AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=_told(errors))
        )
    return AddPartitionsToTxnResponse(results_by_transaction=results)


async def _for_leader(session: Session, asked: AddPartitionsToTxnTransaction) -> Errors:
    partitions = _partitions(asked.topics)
    enlist = Enlist(asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions)
    transactions: Transactions = session.services.transactions
    try:
        if asked.verify_only:
            return await transactions.verify(enlist)
        return await transactions.add(enlist, VERSION_2)
    except KafkaError as error:
        return dict.fromkeys(partitions, error.code)


async def _for_client(
    session: Session, header: RequestHeader, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    partitions = _partitions(request.v3_and_below_topics)
    transactional_id = request.v3_and_below_transactional_id
    errors = _refused(session, transactional_id, partitions)
    if not errors:
        producer_id, epoch = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        try:
            enlist = Enlist(transactional_id, producer_id, epoch, partitions)
            errors = await session.services.transactions.add_in_turn(enlist, 0)
        except KafkaError as error:
            errors = dict.fromkeys(partitions, fenced(error.code, header.api_version, _FENCED_FROM))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_told(errors))


def _refused(session: Session, transactional_id: str, partitions: tuple[TopicPartition, ...]) -> Errors:
    """Empty where all is well; else nothing is added, and those that could have been are told so."""
    if not session.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    errors = {one: _fault(session, one) for one in partitions}
    if all(code is ErrorCode.NONE for code in errors.values()):
        return {}
    return {one: code or ErrorCode.OPERATION_NOT_ATTEMPTED for one, code in errors.items()}


def _fault(session: Session, name: TopicPartition) -> ErrorCode:
    if name.topic in INTERNAL_TOPICS or not session.allows(Operation.WRITE, Resource.TOPIC, name.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if session.services.image.partition(name.topic, name.partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)


def _told(errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, index), code in errors.items():
        result = AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        topics.setdefault(topic, AddPartitionsToTxnTopicResult(name=topic)).results_by_partition.append(result)
    return list(topics.values())
