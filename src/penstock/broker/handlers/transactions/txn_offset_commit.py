"""TxnOffsetCommit 0-5 (KIP-98, KIP-447; from version 5 on it adds the group to the transaction itself, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import OFFSETS_TOPIC, TopicPartition
from penstock.broker.handlers.groups.asking import refusal
from penstock.broker.network.session import Session
from penstock.core.groups import refusals
from penstock.core.security.acl import Operation, Resource
from penstock.core.transactions.adding import Enlist
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from penstock.protocol.generated.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ADDS_FROM = 5
_FOR_CLIENTS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""the transaction's coordinator said it, or said nothing; the client asks its group's"""


async def handle(session: Session, header: RequestHeader, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    if not session.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        return refusals.commit_in_transaction(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    refused = refusal(session, Operation.READ, request.group_id)
    if refused is not None:
        return refusals.commit_in_transaction(request, refused)
    bad = _take_bad(session, request)
    response = TxnOffsetCommitResponse()
    if request.topics:

        async def confirm(partition: int, begin: Callable[[], None]) -> None:
            await _confirm(session, request, partition, begin, header.api_version >= _ADDS_FROM)

        response = await session.services.coordinators.commit_in_transaction(request, confirm)
    for topic in bad:
        _merge(response, topic)
    return response


async def _confirm(
    session: Session, request: TxnOffsetCommitRequest, partition: int, begin: Callable[[], None], adds: bool
) -> None:
    name = TopicPartition(OFFSETS_TOPIC, partition)
    enlist = Enlist(request.transactional_id, request.producer_id, request.producer_epoch, (name,))
    errors = await session.services.verification.confirm(enlist, begin, adds=adds)
    code = errors[name]
    if code is ErrorCode.TRANSACTION_ABORTABLE and not adds:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    if code is not ErrorCode.NONE:
        raise KafkaError(_FOR_CLIENTS.get(code, code))


def _take_bad(session: Session, request: TxnOffsetCommitRequest) -> list[TxnOffsetCommitResponseTopic]:
    """Take out what cannot be committed for its topic's sake, and say why."""
    bad: list[TxnOffsetCommitResponseTopic] = []
    good: list[TxnOffsetCommitRequestTopic] = []
    for topic in request.topics:
        answers = []
        for one in list(topic.partitions):
            code = _fault(session, topic.name, one.partition_index)
            if code is not None:
                topic.partitions.remove(one)
                answers.append(TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code))
        if answers:
            bad.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
        if topic.partitions:
            good.append(topic)
    request.topics = good
    return bad


def _fault(session: Session, topic: str, partition: int) -> ErrorCode | None:
    if not session.allows(Operation.READ, Resource.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if session.services.image.partition(topic, partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _merge(response: TxnOffsetCommitResponse, topic: TxnOffsetCommitResponseTopic) -> None:
    for known in response.topics:
        if known.name == topic.name:
            known.partitions += topic.partitions
            return
    response.topics.append(topic)
