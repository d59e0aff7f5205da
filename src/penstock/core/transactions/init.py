"""InitProducerId with a transactional id: fence whoever had it, end what is open, hand out the next epoch (KIP-360)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.transactions.state import State
from penstock.core.transactions.states import Status
from penstock.core.transactions.transaction import NO_PRODUCER, Transaction, is_exhausted
from penstock.protocol.generated.init_producer_id_response import InitProducerIdResponse

if TYPE_CHECKING:
    from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest


def wants_producer_id(state: State, transactional_id: str) -> bool:
    """Whether the next request of this id may need a new producer id, which the shell must fetch before."""
    known = state.transactions.get(transactional_id)
    return known is None or is_exhausted(known.producer_epoch)


def init(state: State, request: InitProducerIdRequest, fresh: int | None, ticket: int, now: Now) -> Result:
    """`fresh`: a producer id never used before, where `wants_producer_id` said so."""
    transactional_id = request.transactional_id
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if not 0 < request.transaction_timeout_ms <= state.config.max_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"a timeout of {request.transaction_timeout_ms} ms is not within 1 to {state.config.max_timeout_ms} ms",
        )
    known = state.transactions.get(transactional_id)
    if known is None:
        created = Transaction(
            transactional_id, _given(fresh), 0, request.transaction_timeout_ms, updated_ms=now.wall_ms
        )
        return state.write(created, _answer(created))
    _check_expected(known, request)
    if known.status.is_prepared:
        raise KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS, f"the last transaction of {transactional_id} is being ended"
        )
    if known.status is Status.ONGOING:
        # The epoch of the fence is given to nobody: the client asks again and gets the one after it.
        state.last_epochs.pop(transactional_id, None)
        refusal = InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=-1)
        return state.decide(known.fenced(state.level, now.wall_ms), refusal, now)
    return _next_epoch(state, known, request, fresh, now)


def _check_expected(known: Transaction, request: InitProducerIdRequest) -> None:
    """A client that says who it was must be the last one: or have been it before the ids were exhausted, and ask again
    because the answer was lost."""
    expected = request.producer_id
    if expected in (NO_PRODUCER, known.producer_id):
        return
    if expected == known.previous_producer_id and is_exhausted(request.producer_epoch):
        return
    raise KafkaError(ErrorCode.PRODUCER_FENCED, f"{known.transactional_id} has another producer by now")


def _next_epoch(
    state: State, known: Transaction, request: InitProducerIdRequest, fresh: int | None, now: Now
) -> Result:
    names = request.producer_id != NO_PRODUCER
    expected = request.producer_epoch
    if is_exhausted(known.producer_epoch) and (not names or expected == known.producer_epoch):
        after = known.initialized(_given(fresh), 0, request.transaction_timeout_ms, now.wall_ms)
        _remember(state, known, known.producer_epoch if names else None)
        return state.write(after, _answer(after))
    if not names or expected == known.producer_epoch:
        epoch = known.producer_epoch + 1
        _remember(state, known, known.producer_epoch if names else None)
    elif expected == state.last_epochs.get(known.transactional_id):
        epoch = known.producer_epoch  # a call that succeeded, repeated: its answer was lost
    else:
        raise KafkaError(ErrorCode.PRODUCER_FENCED, f"epoch {expected} of {known.transactional_id} is over")
    after = known.initialized(known.producer_id, epoch, request.transaction_timeout_ms, now.wall_ms)
    return state.write(after, _answer(after))


def _remember(state: State, known: Transaction, epoch: int | None) -> None:
    state.last_epochs.pop(known.transactional_id, None)
    if epoch is not None:
        state.last_epochs[known.transactional_id] = epoch


def _given(fresh: int | None) -> int:
    if fresh is None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the id changed meanwhile: ask again")
    return fresh


def _answer(transaction: Transaction) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)
