"""A transactional producer's side of the coordinator: KIP-98, and KIP-890 where the cluster has transaction.version 2.

Under version 2 the first Produce adds a partition and TxnOffsetCommit adds a group; ending a transaction gives out the
next epoch, so that nothing late can enter the next one. Under version 1 both are added by requests of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.protocol.generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from penstock.protocol.generated.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from penstock.protocol.generated.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from penstock.protocol.generated.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.api_versions_response import ApiVersionsResponse
from penstock.protocol.generated.end_txn_request import EndTxnRequest
from penstock.protocol.generated.end_txn_response import EndTxnResponse
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.generated.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.protocol.generated.txn_offset_commit_response import TxnOffsetCommitResponse
from penstock.wire.cluster import Cluster, CoordinatorKind
from penstock.wire.connection import SOFTWARE_NAME
from penstock.wire.conversation import Conversation
from penstock.wire.lanes import Identity
from penstock.wire.routes import ask_any, ask_coordinator

FEATURE = "transaction.version"
TIMEOUT_MS = 60_000
NO_IDENTITY = Identity(-1, -1)

_ADD_PARTITIONS_VERSION_MAX = 3
_TV1_OFFSET_COMMIT_VERSION_MAX = 4
_TV1_END_VERSION_MAX = 4


class State(Enum):
    UNINITIALIZED = "uninitialized"
    READY = "ready"
    OPEN = "open"
    DOOMED = "doomed"
    """something in it failed: it can only be aborted."""
    COMMITTING = "committing"
    ABORTING = "aborting"
    FENCED = "fenced"
    """another producer has this transactional id, or we may not use it: over for good."""


LEGAL: dict[State, frozenset[State]] = {
    State.UNINITIALIZED: frozenset({State.READY, State.FENCED}),
    State.READY: frozenset({State.OPEN, State.FENCED, State.READY}),
    State.OPEN: frozenset({State.COMMITTING, State.ABORTING, State.DOOMED, State.FENCED}),
    State.DOOMED: frozenset({State.ABORTING, State.DOOMED, State.FENCED}),
    State.COMMITTING: frozenset({State.READY, State.COMMITTING, State.DOOMED, State.FENCED}),
    State.ABORTING: frozenset({State.READY, State.ABORTING, State.FENCED}),
    State.FENCED: frozenset({State.FENCED}),
}

FATAL: frozenset[ErrorCode] = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_TXN_STATE,
    }
)
"""From the coordinator, these end the producer. From a partition's leader INVALID_PRODUCER_EPOCH only dooms the
transaction: the coordinator has the last word when it is asked to abort."""


class GroupMember(NamedTuple):
    """Whose offsets a transaction commits; the generation fences a member that the group has left behind."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class Committed(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""


def init_producer_id(
    cluster: Cluster,
    transactional_id: str | None,
    current: Identity = NO_IDENTITY,
    *,
    transaction_timeout_ms: int = TIMEOUT_MS,
    timeout_ms: int = TIMEOUT_MS,
) -> Conversation[Identity]:
    """A new identity, or the next epoch of the `current` one. For a transactional id it also ends what is left open."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=current.producer_id,
        producer_epoch=current.epoch,
    )
    if transactional_id is None:
        answer = yield from ask_any(
            cluster, request, InitProducerIdResponse, lambda reply: reply.error_code, timeout_ms=timeout_ms
        )
    else:
        answer = yield from ask_coordinator(
            cluster,
            CoordinatorKind.TRANSACTION,
            transactional_id,
            request,
            InitProducerIdResponse,
            lambda reply: reply.error_code,
            timeout_ms=timeout_ms,
        )
    return Identity(answer.producer_id, answer.producer_epoch)


class Transactions:
    def __init__(self, cluster: Cluster, transactional_id: str, *, transaction_timeout_ms: int = TIMEOUT_MS) -> None:
        self._cluster = cluster
        self._transaction_timeout_ms = transaction_timeout_ms
        self.transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self.identity = NO_IDENTITY
        self.version = 1
        """of the cluster's feature transaction.version."""
        self.partitions: dict[TopicPartition, None] = {}
        """those the coordinator knows to be in this transaction, or will know by our Produce."""
        self.has_offsets = False
        self.cause: KafkaError | None = None
        """why it is doomed or fenced."""

    def init(self) -> Conversation[Identity]:
        """Fence others with this id, end what they left, learn which rules hold."""
        if self.state is State.FENCED:
            self._expect(State.READY)
        yield from self._learn_version()
        try:
            self.identity = yield from init_producer_id(
                self._cluster,
                self.transactional_id,
                self.identity,
                transaction_timeout_ms=self._transaction_timeout_ms,
            )
        except KafkaError as error:
            raise self._failed(error) from error
        self._turn(State.READY)
        return self.identity

    def begin(self) -> None:
        self._expect(State.READY)
        self._turn(State.OPEN)

    def add(self, partitions: Iterable[TopicPartition]) -> Conversation[None]:
        """Before records of these partitions are sent."""
        self._expect(State.OPEN)
        missing = [partition for partition in partitions if partition not in self.partitions]
        if missing and self.version < 2:
            topics: dict[str, AddPartitionsToTxnTopic] = {}
            for name, index in missing:
                topics.setdefault(name, AddPartitionsToTxnTopic(name=name, partitions=[])).partitions.append(index)
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.identity.producer_id,
                v3_and_below_producer_epoch=self.identity.epoch,
                v3_and_below_topics=list(topics.values()),
            )
            try:
                yield from ask_coordinator(
                    self._cluster,
                    CoordinatorKind.TRANSACTION,
                    self.transactional_id,
                    request,
                    AddPartitionsToTxnResponse,
                    _add_fault,
                    max_version=_ADD_PARTITIONS_VERSION_MAX,
                )
            except KafkaError as error:
                raise self._failed(error) from error
        self.partitions.update(dict.fromkeys(missing))

    def send_offsets(self, member: GroupMember, offsets: Mapping[TopicPartition, Committed]) -> Conversation[None]:
        """Commit a group's offsets as part of this transaction."""
        self._expect(State.OPEN)
        if not offsets:
            return
        self.has_offsets = True
        try:
            if self.version < 2:
                yield from self._add_group(member.group_id)
            yield from ask_coordinator(
                self._cluster,
                CoordinatorKind.GROUP,
                member.group_id,
                self._offset_request(member, offsets),
                TxnOffsetCommitResponse,
                lambda reply: next((p.error_code for t in reply.topics for p in t.partitions if p.error_code), 0),
                max_version=None if self.version >= 2 else _TV1_OFFSET_COMMIT_VERSION_MAX,
            )
        except KafkaError as error:
            raise self._failed(error) from error

    def end(self, *, commit: bool) -> Conversation[Identity]:
        """Commit or abort; returns the identity for the next transaction. A commit or abort that failed by a lost
        connection or a timeout may be called again, and must: its outcome is open until it has succeeded."""
        aim = State.COMMITTING if commit else State.ABORTING
        self._turn(aim)
        if self.partitions or self.has_offsets:
            request = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                committed=commit,
            )
            try:
                answer = yield from ask_coordinator(
                    self._cluster,
                    CoordinatorKind.TRANSACTION,
                    self.transactional_id,
                    request,
                    EndTxnResponse,
                    lambda reply: reply.error_code,
                    max_version=None if self.version >= 2 else _TV1_END_VERSION_MAX,
                )
            except KafkaError as error:
                raise self._failed(error) from error
            if answer.producer_epoch >= 0:
                self.identity = Identity(answer.producer_id, answer.producer_epoch)
        self.partitions.clear()
        self.has_offsets = False
        self.cause = None
        self._turn(State.READY)
        return self.identity

    def expect_open(self) -> None:
        """Raises unless records may be sent."""
        self._expect(State.OPEN)

    def doom(self, cause: KafkaError) -> None:
        """A batch of this transaction failed: nothing but an abort is left."""
        if self.state in (State.OPEN, State.COMMITTING):
            self.cause = cause
            self._turn(State.DOOMED)

    def _learn_version(self) -> Conversation[None]:
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version="0")
        answer = yield from ask_any(self._cluster, request, ApiVersionsResponse, lambda reply: reply.error_code)
        levels = {feature.name: feature.max_version_level for feature in answer.finalized_features}
        self.version = levels.get(FEATURE, 1)

    def _add_group(self, group_id: str) -> Conversation[None]:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            group_id=group_id,
        )
        yield from ask_coordinator(
            self._cluster,
            CoordinatorKind.TRANSACTION,
            self.transactional_id,
            request,
            AddOffsetsToTxnResponse,
            lambda reply: reply.error_code,
        )

    def _offset_request(
        self, member: GroupMember, offsets: Mapping[TopicPartition, Committed]
    ) -> TxnOffsetCommitRequest:
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (name, index), committed in offsets.items():
            topic = topics.setdefault(name, TxnOffsetCommitRequestTopic(name=name, partitions=[]))
            topic.partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    committed_metadata=committed.metadata,
                )
            )
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=member.group_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            generation_id=member.generation,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            topics=list(topics.values()),
        )

    def _failed(self, error: KafkaError) -> KafkaError:
        """Note what this refusal from a coordinator means for the transaction, and hand it on."""
        if error.code in FATAL:
            self.cause = error
            self._turn(State.FENCED)
        elif self.state is State.OPEN or error.code is ErrorCode.TRANSACTION_ABORTABLE:
            self.doom(error)
        return error

    def _expect(self, state: State) -> None:
        if self.state is state:
            return
        cause = f": {self.cause}" if self.cause else ""
        code = ErrorCode.PRODUCER_FENCED if self.state is State.FENCED else ErrorCode.INVALID_TXN_STATE
        raise KafkaError(
            code, f"transactional id {self.transactional_id} is {self.state.value}, not {state.value}{cause}"
        )

    def _turn(self, state: State) -> None:
        if state not in LEGAL[self.state]:
            self._expect(state)
        self.state = state


def _add_fault(answer: AddPartitionsToTxnResponse) -> int:
    """The error that matters: partitions that were fine but not attempted only point at another one."""
    codes = [p.partition_error_code for t in answer.results_by_topic_v3_and_below for p in t.results_by_partition]
    real = [code for code in codes if code not in (0, ErrorCode.OPERATION_NOT_ATTEMPTED)]
    return real[0] if real else next((code for code in codes if code), 0)
