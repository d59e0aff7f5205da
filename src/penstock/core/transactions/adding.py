"""AddPartitionsToTxn, AddOffsetsToTxn and the question of a partition's leader: is it part of that transaction?"""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.core.coordinator.result import Now, Result
from penstock.core.transactions.markers import TimedOut
from penstock.core.transactions.state import State, timeout_key
from penstock.core.transactions.states import Status
from penstock.core.transactions.transaction import Transaction


class Enlist(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


Errors = dict[TopicPartition, ErrorCode]


def add(state: State, request: Enlist, version: int, ticket: int, now: Now) -> Result:
    """The partitions are part of the transaction from now on, which begins where none is open. `version`:
    transaction.version of the client. Answers with the errors by partition."""
    known = _checked(state, request)
    answer: Errors = dict.fromkeys(request.partitions, ErrorCode.NONE)
    if known.status is Status.ONGOING and set(request.partitions) <= set(known.partitions):
        return Result(answer, after_writes=True)
    if known.status is not Status.ONGOING:
        key = timeout_key(known.transactional_id)
        state.timers.schedule(key, now.ms + known.timeout_ms, TimedOut(known.transactional_id))
    return state.write(known.added(request.partitions, version, now.wall_ms), answer)


def verify(state: State, request: Enlist, context: object, ticket: int, now: Now) -> Result:
    """Which of the partitions are part of the open transaction; those that are not cannot be written to."""
    known = _checked(state, request)
    enlisted = set(known.partitions) if known.status is Status.ONGOING else set()
    answer: Errors = {
        one: ErrorCode.NONE if one in enlisted else ErrorCode.TRANSACTION_ABORTABLE for one in request.partitions
    }
    return Result(answer, after_writes=True)


def _checked(state: State, request: Enlist) -> Transaction:
    known = state.known(request.transactional_id)
    if known.status.is_prepared:
        # First of all: the client may know the producer id already that takes over when this is complete.
        raise KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS, f"the last transaction of {known.transactional_id} is ending"
        )
    if known.producer_id != request.producer_id:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{known.transactional_id} has producer id {known.producer_id}"
        )
    if known.producer_epoch != request.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED, f"{known.transactional_id} is at epoch {known.producer_epoch}")
    return known
