"""Which batches of a Produce are the first of their transaction, and what its coordinator says of them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.network.session import Session
from penstock.core.log.verification import Guard
from penstock.core.replication.partition import Partition
from penstock.core.security.acl import Operation, Resource
from penstock.core.transactions.adding import Enlist, Errors
from penstock.protocol.hot_produce import ProduceCall
from penstock.records.batch import HEADER_BYTES, BatchHeader, read_header

_ABORTABLE_FROM = 11
_ADDS_FROM = 12
_ASKED_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""A client may not know that these can come from a partition's leader, nor that it should send again: it is told
NOT_ENOUGH_REPLICAS, after which every client does."""

Place = tuple[str | bytes, int]


class Verdict(NamedTuple):
    """What may become of a transactional batch."""

    guard: Guard | None = None
    """None: its transaction is open here"""
    error: KafkaError | None = None


Verdicts = dict[Place, Verdict]
NO_VERDICTS: Verdicts = {}
_OPEN = Verdict()


class Verifying:
    """Some batches need the word of the coordinator."""

    def __init__(self, session: Session, version: int, transactional_id: str, verdicts: Verdicts) -> None:
        self.verdicts = verdicts
        self._session = session
        self._version = version
        self._transactional_id = transactional_id
        self._producer = (-1, -1)
        self._waiting: dict[TopicPartition, tuple[Place, Partition, int]] = {}
        """each with the first sequence of its batch"""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def want(self, partition: Partition, place: Place, header: BatchHeader) -> None:
        producer = (header.producer_id, header.producer_epoch)
        if self._waiting and producer != self._producer:
            text = "the request has batches of more than one producer"
            self.verdicts[place] = Verdict(error=KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, text))
            return
        self._producer = producer
        self._waiting[partition.name] = place, partition, header.base_sequence

    def _begin(self) -> None:
        now_ms = self._session.services.clock.wall_ms()
        for place, partition, sequence in self._waiting.values():
            self.verdicts[place] = Verdict(partition.log.verify(*self._producer, sequence, now_ms))

    def settle(self) -> bool:
        """Whether all could be answered at once: the guards were taken just before, and nothing came between."""
        if self._version >= _ADDS_FROM:
            return False
        errors = self._session.services.verification.known(self._request())
        if errors is None:
            return False
        self._take(errors)
        return True

    async def finish(self) -> Verdicts:
        errors = await self._session.services.verification.confirm(
            self._request(), self._begin, adds=self._version >= _ADDS_FROM
        )
        self._take(errors)
        return self.verdicts

    def _request(self) -> Enlist:
        return Enlist(self._transactional_id, *self._producer, tuple(self._waiting))

    def _take(self, errors: Errors) -> None:
        for name, (place, _, _) in self._waiting.items():
            code = _for_clients(errors[name], self._version)
            if code is not ErrorCode.NONE:
                text = f"{name}: the coordinator of {self._transactional_id} says {errors[name].name}"
                self.verdicts[place] = Verdict(error=KafkaError(code, text))


def start_verification(
    session: Session, call: ProduceCall, body: bytearray | memoryview, version: int
) -> Verdicts | Verifying:
    """What can be said at once, or what has to be asked."""
    transactional_id = call.transactional_id
    assert transactional_id is not None
    verdicts: Verdicts = {}
    verifying = Verifying(session, version, transactional_id, verdicts)
    allowed = session.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)
    for topic, partitions in call.topics:
        for index, start, size in partitions:
            place = (topic, index)
            if not allowed:
                verdicts[place] = Verdict(error=KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            elif size >= HEADER_BYTES:
                verdicts[place] = _look(session, place, read_header(body, start), verifying)
    return verifying if verifying else verdicts


def _look(session: Session, place: Place, header: BatchHeader, verifying: Verifying) -> Verdict:
    services = session.services
    try:
        partition = services.partitions.find(*place)
        partition.must_lead()
    except KafkaError as error:
        return Verdict(error=error)
    if not header.is_transactional or not session.allows(Operation.WRITE, Resource.TOPIC, partition.name.topic):
        return _OPEN  # nothing is asked for what will not be appended, or is not part of a transaction
    guard = partition.log.verify(
        header.producer_id, header.producer_epoch, header.base_sequence, services.clock.wall_ms()
    )
    if guard is not None:
        verifying.want(partition, place, header)
        return verifying.verdicts.get(place, Verdict(guard))
    return _OPEN


def _for_clients(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in _ASKED_AGAIN else code
