"""The state that every decision of a shard is given: what is stored, what runs, what is to be sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord, Now, Result
from penstock.core.coordinator.timers import Timers
from penstock.core.transactions import records
from penstock.core.transactions.config import TransactionConfig
from penstock.core.transactions.markers import Decided, MarkerOrder
from penstock.core.transactions.transaction import Transaction


@dataclass(slots=True)
class State:
    config: TransactionConfig
    coordinator_epoch: int
    """the epoch in which this broker leads the partition: older coordinators' markers are refused"""
    level: int
    """the cluster's transaction.version"""
    transactions: dict[str, Transaction] = field(default_factory=dict)
    """durable: changed by replay alone"""
    last_epochs: dict[str, int] = field(default_factory=dict)
    """soft: the epoch before the last bump that a producer asked for itself, which a retry may name (KIP-360)"""
    timers: Timers = field(default_factory=Timers)
    orders: list[MarkerOrder] = field(default_factory=list)
    """soft: not yet fetched by the shell"""

    def replay(self, record: CoordinatorRecord) -> None:
        transactional_id = records.read_key(record.key)
        if transactional_id is None:
            return
        if record.value is None:
            self.transactions.pop(transactional_id, None)
            self.last_epochs.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = records.read_value(transactional_id, record.value)

    def known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"transactional id {transactional_id} is not known")
        return transaction

    def write(self, transaction: Transaction, response: object, then: object = None) -> Result:
        return Result(response, [records.transaction_record(transaction, self.level)], then=then)

    def decide(self, prepared: Transaction, response: object, now: Now) -> Result:
        """Write the outcome; the markers follow when it is committed."""
        self.timers.cancel(timeout_key(prepared.transactional_id))
        then = Decided(prepared.transactional_id, prepared.producer_id, prepared.producer_epoch)
        return self.write(prepared, response, then)


def timeout_key(transactional_id: str) -> tuple[str, str]:
    return ("timeout", transactional_id)


def again_key(transactional_id: str) -> tuple[str, str]:
    return ("again", transactional_id)
