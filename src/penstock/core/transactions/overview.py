"""DescribeTransactions and ListTransactions of one shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.base.expressions import matches
from penstock.core.coordinator.result import Now, Result
from penstock.core.transactions.state import State
from penstock.core.transactions.states import LABELS
from penstock.core.transactions.transaction import Transaction
from penstock.protocol.generated.describe_transactions_response import TopicData
from penstock.protocol.generated.describe_transactions_response import TransactionState as Described
from penstock.protocol.generated.list_transactions_response import TransactionState as Listed

if TYPE_CHECKING:
    from penstock.protocol.generated.list_transactions_request import ListTransactionsRequest


def describe(state: State, transactional_id: str, context: object, ticket: int, now: Now) -> Result:
    known = state.transactions.get(transactional_id)
    if known is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return Result(Described(transactional_id=transactional_id, error_code=code))
    topics: dict[str, TopicData] = {}
    for topic, index in known.partitions:
        topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return Result(
        Described(
            transactional_id=transactional_id,
            transaction_state=known.status.label,
            transaction_timeout_ms=known.timeout_ms,
            transaction_start_time_ms=known.started_ms,
            producer_id=known.producer_id,
            producer_epoch=known.producer_epoch,
            topics=list(topics.values()),
        )
    )


def list_transactions(state: State, request: ListTransactionsRequest, context: object, ticket: int, now: Now) -> Result:
    return Result(
        [
            Listed(
                transactional_id=known.transactional_id,
                producer_id=known.producer_id,
                transaction_state=known.status.label,
            )
            for known in state.transactions.values()
            if _fits(known, request, now)
        ]
    )


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    return [name for name in request.state_filters if name not in LABELS]


def _fits(known: Transaction, request: ListTransactionsRequest, now: Now) -> bool:
    if request.state_filters and known.status.label not in request.state_filters:
        return False
    if request.producer_id_filters and known.producer_id not in request.producer_id_filters:
        return False
    if request.transactional_id_pattern and not matches(request.transactional_id_pattern, known.transactional_id):
        return False
    return request.duration_filter < 0 or now.wall_ms - known.started_ms >= request.duration_filter
