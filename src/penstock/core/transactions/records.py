"""The records of `__transaction_state` as Apache Kafka 4.3 writes them: one key an id, its whole state as the value.

Values are of version 0 while the cluster's transaction.version is 0, else of version 1, whose tagged fields carry the
other producer ids and the client's version.
"""

from __future__ import annotations

from struct import Struct

from penstock.base.errors import DecodeError
from penstock.base.ids import TopicPartition
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.transactions.states import Status
from penstock.core.transactions.transaction import Transaction
from penstock.protocol.generated.transaction_log_key import TransactionLogKey
from penstock.protocol.generated.transaction_log_value import PartitionsSchema, TransactionLogValue

_VERSION = Struct(">h")
_KEY_TYPE = 0


def transaction_record(transaction: Transaction, level: int) -> CoordinatorRecord:
    """`level`: the cluster's transaction.version."""
    version = 1 if level else 0
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.status,
        transaction_partitions=None if transaction.status is Status.EMPTY else _topics(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
    )
    if version:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return CoordinatorRecord(_key(transaction.transactional_id), _VERSION.pack(version) + value.encode(version))


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_key(transactional_id), None)


def read_key(key: bytes) -> str | None:
    """The transactional id; None for a key of a type that is not known."""
    if len(key) < _VERSION.size:
        raise DecodeError(f"the key of a transaction has {len(key)} bytes")
    if _VERSION.unpack_from(key)[0] != _KEY_TYPE:
        return None
    return TransactionLogKey.decode(memoryview(key)[2:], 0).transactional_id


def read_value(transactional_id: str, value: bytes) -> Transaction:
    if len(value) < _VERSION.size:
        raise DecodeError(f"the value of a transaction has {len(value)} bytes")
    stored = TransactionLogValue.decode(memoryview(value)[2:], _VERSION.unpack_from(value)[0])
    try:
        status = Status(stored.transaction_status)
    except ValueError:
        raise DecodeError(f"transaction {transactional_id} is in state {stored.transaction_status}") from None
    topics = stored.transaction_partitions or []
    return Transaction(
        transactional_id,
        stored.producer_id,
        stored.producer_epoch,
        stored.transaction_timeout_ms,
        status,
        tuple(TopicPartition(one.topic, index) for one in topics for index in one.partition_ids),
        stored.transaction_start_timestamp_ms,
        stored.transaction_last_update_timestamp_ms,
        stored.previous_producer_id,
        stored.next_producer_id,
        stored.client_transaction_version,
    )


def _topics(partitions: tuple[TopicPartition, ...]) -> list[PartitionsSchema]:
    topics: dict[str, PartitionsSchema] = {}
    for topic, index in partitions:
        topics.setdefault(topic, PartitionsSchema(topic=topic)).partition_ids.append(index)
    return list(topics.values())


def _key(transactional_id: str) -> bytes:
    return bytes(_VERSION.pack(_KEY_TYPE) + TransactionLogKey(transactional_id=transactional_id).encode(0))
