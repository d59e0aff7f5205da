"""DescribeTransactions 0 (KIP-664): the state of transactional ids that this broker coordinates."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_transactions_request import DescribeTransactionsRequest
from penstock.protocol.generated.describe_transactions_response import DescribeTransactionsResponse, TransactionState


def handle(
    session: Session, header: RequestHeader, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(transaction_states=[_one(session, one) for one in request.transactional_ids])


def _one(session: Session, transactional_id: str) -> TransactionState:
    if not session.allows(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id):
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return TransactionState(transactional_id=transactional_id, error_code=refused)
    found: TransactionState = session.services.transactions.describe(transactional_id)
    found.topics = [one for one in found.topics if session.allows(Operation.DESCRIBE, Resource.TOPIC, one.topic)]
    return found
