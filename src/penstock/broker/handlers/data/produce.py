"""Produce 3-13, by hand: it is the hot path.

Versions: 3+ carries v2 batches, 7+ may carry zstd, 8+ tells single records that were refused, 10+ who leads now,
13 names topics by id. acks=0 has no answer: an error closes the connection, which is how such a client learns of it.
acks=1 answers after the append, acks=all once the watermark has passed it; on a topic with flush.messages=1 both wait
for the disk. With acks=all there must be min.insync.replicas in sync before (19) and when it is committed (20). An
append happens before anything is waited for, so a connection's requests are appended in their order.
The first batch of a transaction waits until the transaction's coordinator has confirmed it (KIP-890), and those behind
it with it; from version 12 on (transaction.version 2) the partition becomes part of the transaction by that.
"""

from __future__ import annotations

import asyncio
from functools import partial

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import INTERNAL_TOPICS
from penstock.broker.handlers.data.produce_verification import (
    NO_VERDICTS,
    Verdict,
    Verdicts,
    Verifying,
    start_verification,
)
from penstock.broker.leader_hints import Hints
from penstock.broker.network.reply import NO_PARTS, CloseConnection, Parts, Reply
from penstock.broker.network.session import Session
from penstock.broker.waiters import Waiters
from penstock.core.log.validate import RecordsRefused
from penstock.core.log.verification import Guard
from penstock.core.replication.partition import Partition
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.hot_produce import ProduceAnswer, ProduceCall, decode_produce_request, encode_produce_response
from penstock.records.batch import ATTRIBUTES_AT, CODEC_MASK, HEADER_BYTES, TRANSACTIONAL_BIT, Codec

_ACKS_NONE, _ACKS_LEADER, _ACKS_ALL = 0, 1, -1
_ZSTD_FROM = 7
_LEADERS_FROM = 10
_FLAGS_AT = ATTRIBUTES_AT + 1
"""the low byte of a batch's attributes"""
_RARE = TRANSACTIONAL_BIT | Codec.ZSTD
"""bits of it that need a closer look"""

Answers = list[tuple[str | bytes, list[ProduceAnswer]]]


def handle(session: Session, header: RequestHeader, body: bytearray | memoryview, at: int) -> Parts | Reply:
    version = header.api_version
    call = decode_produce_request(body, at, version)
    if call.transactional_id is not None:
        verdicts = start_verification(session, call, body, version)
        if isinstance(verdicts, Verifying):
            if not verdicts.settle():
                reply = Reply()
                # One behind it may find the transaction open, need no word, and overtake one that still waits for its
                # own.
                session.barrier = True
                # The frame's buffer is the next request's when this returns.
                session.services.spawn(_append_confirmed(session, header, call, bytearray(body), verdicts, reply))
                return reply
            verdicts = verdicts.verdicts
    else:
        verdicts = NO_VERDICTS
    waits: list[tuple[Partition, int]] = []
    answers, refused = _append_all(session, call, body, version, waits, verdicts)
    if call.acks == _ACKS_NONE:
        _close_on_error(answers)
        return NO_PARTS
    if waits:
        return _Wait(session, header, call, answers, waits, refused, Reply()).reply
    return [_encoded(session, header, answers, refused)]


async def _append_confirmed(
    session: Session, header: RequestHeader, call: ProduceCall, body: bytearray, verifying: Verifying, reply: Reply
) -> None:
    verdicts = await verifying.finish()
    waits: list[tuple[Partition, int]] = []
    try:
        answers, refused = _append_all(session, call, body, header.api_version, waits, verdicts)
        if call.acks == _ACKS_NONE:
            _close_on_error(answers)
            reply.complete(NO_PARTS)
        elif waits:
            _Wait(session, header, call, answers, waits, refused, reply)
        else:
            reply.complete([_encoded(session, header, answers, refused)])
    except CloseConnection as fault:
        reply.refuse(fault)


def _encoded(session: Session, header: RequestHeader, answers: Answers, refused: bool) -> bytes | bytearray:
    version, correlation_id = header.api_version, header.correlation_id
    if not refused or version < _LEADERS_FROM:
        return encode_produce_response(version, correlation_id, answers)
    hints = Hints(session.services, session.peer.listener)
    for topic, told in answers:
        for slot, answer in enumerate(told):
            hint = hints.leader(topic, answer.partition, answer.error_code)
            if hint is not None:
                told[slot] = answer._replace(leader=hint)
    return encode_produce_response(version, correlation_id, answers, endpoints=hints.endpoints())


def _append_all(
    session: Session,
    call: ProduceCall,
    body: bytearray | memoryview,
    version: int,
    waits: list[tuple[Partition, int]],
    verdicts: Verdicts,
) -> tuple[Answers, bool]:
    """The answers so far, and whether something was refused."""
    acks = call.acks
    refusal = False
    answers: Answers = []
    for topic, partitions in call.topics:
        told = []
        for index, start, size in partitions:
            try:
                if not -1 <= acks <= 1:
                    raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}: it must be -1, 0 or 1")
                told.append(_append(session, topic, index, body, start, size, acks, version, waits, verdicts))
            except RecordsRefused as fault:
                refusal = True
                refused = [(one.batch_index, one.message) for one in fault.record_errors]
                told.append(ProduceAnswer(index, fault.code, record_errors=refused, error_message=fault.message))
            except KafkaError as fault:
                refusal = True
                told.append(ProduceAnswer(index, fault.code, error_message=fault.message))
        answers.append((topic, told))
    return answers, refusal


def _append(
    session: Session,
    topic: str | bytes,
    index: int,
    body: bytearray | memoryview,
    start: int,
    size: int,
    acks: int,
    version: int,
    waits: list[tuple[Partition, int]],
    verdicts: Verdicts,
) -> ProduceAnswer:
    services = session.services
    partition = services.partitions.find(topic, index)
    name = partition.name.topic
    if not session.allows(Operation.WRITE, Resource.TOPIC, name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if name in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal: clients do not write to it")
    if size <= 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, "there is no record batch in the request")
    guard = None
    if size >= HEADER_BYTES and body[start + _FLAGS_AT] & _RARE:
        guard = _check_rare(body[start + _FLAGS_AT], version, verdicts.get((topic, index)))
    appended = services.partitions.append(partition, body, start, size, to_all=acks == _ACKS_ALL, guard=guard)
    end = appended.last_offset + 1
    if acks and partition.high_watermark < end and (acks == _ACKS_ALL or partition.flushes_before_ack):
        waits.append((partition, end))
    return ProduceAnswer(index, 0, appended.first_offset, appended.append_time_ms, partition.log.start_offset)


def _check_rare(flags: int, version: int, verdict: Verdict | None) -> Guard | None:
    """The guard of a transaction's first batch."""
    if flags & CODEC_MASK == Codec.ZSTD and version < _ZSTD_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {_ZSTD_FROM}")
    if not flags & TRANSACTIONAL_BIT:
        return None
    if verdict is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the request names no transactional id")
    if verdict.error is not None:
        raise verdict.error
    return verdict.guard


def _close_on_error(answers: Answers) -> None:
    for topic, told in answers:
        for answer in told:
            if answer.error_code:
                code = ErrorCode(answer.error_code).name
                raise CloseConnection(f"acks=0 and {code} for partition {answer.partition} of {topic!r}")


class _Wait:
    """An answer that waits until what the request appended is on all copies (acks=all) or on our disk (acks=1), for
    each of its partitions, or its time is over."""

    def __init__(
        self,
        session: Session,
        header: RequestHeader,
        call: ProduceCall,
        answers: Answers,
        waits: list[tuple[Partition, int]],
        refused: bool,
        reply: Reply,
    ) -> None:
        self.reply = reply
        self._refused = refused
        self._session = session
        self._header = header
        self._to_all = call.acks == _ACKS_ALL
        self._answers = answers
        ends = {partition: end for partition, end in waits if not self._reached(partition, end)}
        self._timer = asyncio.get_running_loop().call_later(max(call.timeout_ms, 0) / 1000, self._expire)
        self.reply.abandon = self._abandon
        waiters: Waiters = session.services.waiters
        wait = waiters.when_passed if self._to_all else waiters.when_synced
        self._open = {
            partition: wait(partition, end, partial(self._passed, partition)) for partition, end in ends.items()
        }
        if not self._open:
            self._finish()

    def _reached(self, partition: Partition, end: int) -> bool:
        return (partition.high_watermark if self._to_all else partition.log.synced_offset) >= end

    def _passed(self, partition: Partition) -> None:
        if self.reply.done or partition not in self._open:
            return
        end, _ = self._open.pop(partition)
        leading = partition.leading
        if leading is None:
            self._fail(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif not self._reached(partition, end):
            self._fail(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        elif self._to_all and leading.under_min_isr:
            self._fail(partition, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        if not self._open:
            self._finish()

    def _expire(self) -> None:
        if not self.reply.done:
            for partition in self._open:
                self._fail(partition, ErrorCode.REQUEST_TIMED_OUT)
            self._wait_no_more()
            self._finish()

    def _abandon(self) -> None:
        self._timer.cancel()
        self._wait_no_more()

    def _wait_no_more(self) -> None:
        """A watermark may stand still for hours, and every retry waits for it anew."""
        waiters: Waiters = self._session.services.waiters
        for partition, entry in self._open.items():
            waiters.forget(partition, entry)
        self._open.clear()

    def _fail(self, partition: Partition, code: ErrorCode) -> None:
        """What was appended may not be promised: say so instead of its offset."""
        self._refused = True
        names = (partition.topic_id, partition.name.topic)
        for topic, told in self._answers:
            for slot, answer in enumerate(told):
                if topic in names and answer.partition == partition.name.partition and not answer.error_code:
                    told[slot] = ProduceAnswer(answer.partition, code)

    def _finish(self) -> None:
        self._timer.cancel()
        self.reply.abandon = None  # or each of the two would keep the other until the garbage is collected
        self.reply.complete([_encoded(self._session, self._header, self._answers, self._refused)])
