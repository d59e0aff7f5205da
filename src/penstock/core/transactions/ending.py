"""EndTxn, before KIP-890 and with it; timeouts; and the completion when every partition has its marker.

With version 2 each end gives out the next epoch. A request with the epoch before it is then a retry, one with the epoch
itself belongs to the next transaction: a late request cannot end another transaction than its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import Now, Result
from penstock.core.transactions.markers import DecideAgain, Decided, MarkerOrder, TimedOut
from penstock.core.transactions.state import State, again_key, timeout_key
from penstock.core.transactions.states import Status
from penstock.core.transactions.transaction import EPOCH_MAX, NO_PRODUCER, Transaction, is_exhausted
from penstock.protocol.generated.end_txn_response import EndTxnResponse

if TYPE_CHECKING:
    from penstock.protocol.generated.end_txn_request import EndTxnRequest


def end(state: State, request: EndTxnRequest, fresh: int | None, ticket: int, now: Now) -> Result:
    """As clients before KIP-890 ask: the epoch stays."""
    known = state.known(request.transactional_id)
    if known.producer_id != request.producer_id:
        raise _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING, known)
    if known.producer_epoch != request.producer_epoch:
        raise _refused(ErrorCode.PRODUCER_FENCED, known)
    if known.status is Status.ONGOING:
        return state.decide(known.prepared(request.committed, 0, now.wall_ms), EndTxnResponse(), now)
    if known.status is _aim(request.committed):
        return Result(EndTxnResponse(), after_writes=True)
    raise _refused_in_state(known, request.committed)


def end_with_bump(state: State, request: EndTxnRequest, fresh: int | None, ticket: int, now: Now) -> Result:
    """As clients of version 2 ask. `fresh`: as in `init`."""
    known = state.known(request.transactional_id)
    if known.status.is_prepared:
        raise _refused(ErrorCode.CONCURRENT_TRANSACTIONS, known)
    overflowed = (
        known.previous_producer_id == request.producer_id
        and request.producer_epoch == EPOCH_MAX - 1
        and known.producer_epoch == 0
    )
    if known.producer_id != request.producer_id and not overflowed:
        raise _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING, known)
    is_complete = known.status in (Status.COMPLETE_COMMIT, Status.COMPLETE_ABORT)
    is_retry = is_complete and (overflowed or known.producer_epoch == request.producer_epoch + 1)
    if not is_retry and known.producer_epoch != request.producer_epoch:
        raise _refused(ErrorCode.PRODUCER_FENCED, known)
    if is_retry and known.status is _aim(request.committed):
        return Result(_answer(known), after_writes=True)
    if is_retry or (known.status is not Status.ONGOING and request.committed):
        raise _refused_in_state(known, request.committed)
    return _prepare(state, known, request.committed, fresh, now)


def _prepare(state: State, known: Transaction, commit: bool, fresh: int | None, now: Now) -> Result:
    next_id = NO_PRODUCER
    if is_exhausted(known.producer_epoch):
        if fresh is None:
            raise _refused(ErrorCode.CONCURRENT_TRANSACTIONS, known)
        next_id = fresh
    state.last_epochs[known.transactional_id] = known.producer_epoch
    prepared = known.prepared(commit, 2, now.wall_ms, next_id)
    return state.decide(prepared, _answer(prepared.completed(now.wall_ms)), now)


def time_out(state: State, event: TimedOut, now: Now) -> Result:
    """Abort what was open for too long, with the next epoch: its producer is fenced."""
    known = state.transactions.get(event.transactional_id)
    if known is None or known.status is not Status.ONGOING:
        return Result()
    state.last_epochs.pop(known.transactional_id, None)
    return state.decide(known.fenced(state.level, now.wall_ms), None, now)


def decide_again(state: State, transactional_id: str, now: Now) -> Result:
    """The same outcome once more: markers may go only when it is known to be committed."""
    known = state.transactions.get(transactional_id)
    if known is None or not known.status.is_prepared:
        return Result()
    return state.decide(known, None, now)


def decided(state: State, then: Decided, error: ErrorCode | None, now: Now) -> Result:
    """The outcome is committed: order the markers. With an error it is not, or not known to be: try again."""
    known = state.transactions.get(then.transactional_id)
    if known is None or not _is_outcome(known, then.producer_id, then.producer_epoch):
        if known is not None and known.status is Status.ONGOING:
            key, event = timeout_key(known.transactional_id), TimedOut(known.transactional_id)
            left_ms = known.started_ms + known.timeout_ms - now.wall_ms
            state.timers.schedule(key, now.ms + max(left_ms, state.config.retry_ms), event)
        return Result()
    if error is not None:
        key = again_key(known.transactional_id)
        state.timers.schedule(key, now.ms + state.config.retry_ms, DecideAgain(known.transactional_id))
        return Result()
    state.orders.append(
        MarkerOrder(
            known.transactional_id,
            known.producer_id,
            known.producer_epoch,
            known.status is Status.PREPARE_COMMIT,
            state.coordinator_epoch,
            known.client_version,
            known.partitions,
        )
    )
    return Result()


def complete(state: State, order: MarkerOrder, context: object, ticket: int, now: Now) -> Result:
    """Every partition of the order has its marker."""
    known = state.transactions.get(order.transactional_id)
    if known is None or not _is_outcome(known, order.producer_id, order.producer_epoch):
        return Result()
    return state.write(known.completed(now.wall_ms), None)


def _is_outcome(known: Transaction, producer_id: int, epoch: int) -> bool:
    return known.status.is_prepared and (known.producer_id, known.producer_epoch) == (producer_id, epoch)


def _aim(committed: bool) -> Status:
    return Status.COMPLETE_COMMIT if committed else Status.COMPLETE_ABORT


def _refused_in_state(known: Transaction, committed: bool) -> KafkaError:
    """Being ended in the way that is asked for: ask again. In any other state there is nothing to end that way."""
    under_way = Status.PREPARE_COMMIT if committed else Status.PREPARE_ABORT
    return _refused(
        ErrorCode.CONCURRENT_TRANSACTIONS if known.status is under_way else ErrorCode.INVALID_TXN_STATE, known
    )


def _refused(code: ErrorCode, known: Transaction) -> KafkaError:
    return KafkaError(
        code,
        f"{known.transactional_id} is {known.status.label}, of producer {known.producer_id} at epoch "
        f"{known.producer_epoch}",
    )


def _answer(transaction: Transaction) -> EndTxnResponse:
    return EndTxnResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)
