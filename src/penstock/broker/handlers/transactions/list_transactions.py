"""ListTransactions 0-2 (KIP-664, KIP-994, KIP-1152: by a regular expression): the transactional ids that this broker
coordinates."""

from __future__ import annotations

from penstock.broker.network.session import Session
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.list_transactions_request import ListTransactionsRequest
from penstock.protocol.generated.list_transactions_response import ListTransactionsResponse


def handle(session: Session, header: RequestHeader, request: ListTransactionsRequest) -> ListTransactionsResponse:
    response: ListTransactionsResponse = session.services.transactions.list_transactions(request)
    response.transaction_states = [
        one
        for one in response.transaction_states
        if session.allows(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, one.transactional_id)
    ]
    return response
