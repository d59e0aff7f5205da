"""Produce 3-13, by hand: it is the hot path.

Versions: 3+ carries v2 batches, 7+ may carry zstd, 8+ tells single records that were refused, 10+ who leads now,
13 names topics by id. acks=0 has no answer: an error closes the connection, which is how such a client learns of it.
acks=1 answers after the append, acks=all once the watermark has passed it; on a topic with flush.messages=1 both wait
for the disk. An append happens before anything is waited for, so a connection's requests are appended in their order.
Deviation: transactions are not built yet, a batch that belongs to one is refused.
"""

from __future__ import annotations

import asyncio
from functools import partial

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import INTERNAL_TOPICS
from penstock.broker.network.reply import NO_PARTS, CloseConnection, Parts, Reply
from penstock.broker.network.session import Session
from penstock.broker.waiters import Waiters
from penstock.core.log.validate import RecordsRefused
from penstock.core.replication.partition import Partition
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.hot_produce import ProduceAnswer, ProduceCall, decode_produce_request, encode_produce_response
from penstock.records.batch import ATTRIBUTES_AT, CODEC_MASK, HEADER_BYTES, TRANSACTIONAL_BIT, Codec

_ACKS_NONE, _ACKS_LEADER, _ACKS_ALL = 0, 1, -1
_ZSTD_FROM = 7
_FLAGS_AT = ATTRIBUTES_AT + 1
"""the low byte of a batch's attributes"""
_RARE = TRANSACTIONAL_BIT | Codec.ZSTD
"""bits of it that need a closer look"""

Answers = list[tuple[str | bytes, list[ProduceAnswer]]]


def handle(session: Session, header: RequestHeader, body: bytearray | memoryview, at: int) -> Parts | Reply:
    version = header.api_version
    call = decode_produce_request(body, at, version)
    waits: list[tuple[Partition, int]] = []
    answers = _append_all(session, call, body, version, waits)
    if call.acks == _ACKS_NONE:
        _close_on_error(answers)
        return NO_PARTS
    if not waits:
        return [encode_produce_response(version, header.correlation_id, answers)]
    return _Wait(session.services.waiters, header, call.timeout_ms, answers, waits).reply


def _append_all(
    session: Session, call: ProduceCall, body: bytearray | memoryview, version: int, waits: list[tuple[Partition, int]]
) -> Answers:
    acks = call.acks
    answers: Answers = []
    for topic, partitions in call.topics:
        told = []
        for index, start, size in partitions:
            try:
                if not -1 <= acks <= 1:
                    raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}: it must be -1, 0 or 1")
                told.append(_append(session, topic, index, body, start, size, acks, version, waits))
            except RecordsRefused as fault:
                refused = [(one.batch_index, one.message) for one in fault.record_errors]
                told.append(ProduceAnswer(index, fault.code, record_errors=refused, error_message=fault.message))
            except KafkaError as fault:
                told.append(ProduceAnswer(index, fault.code, error_message=fault.message))
        answers.append((topic, told))
    return answers


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
    if size >= HEADER_BYTES and body[start + _FLAGS_AT] & _RARE:
        _check_rare(body[start + _FLAGS_AT], version)
    appended = services.partitions.append(partition, body, start, size)
    end = appended.last_offset + 1
    if acks and partition.high_watermark < end:
        waits.append((partition, end))
    return ProduceAnswer(index, 0, appended.first_offset, appended.append_time_ms, partition.log.start_offset)


def _check_rare(flags: int, version: int) -> None:
    if flags & TRANSACTIONAL_BIT:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, "transactions are not built yet: send without a transactional id")
    if flags & CODEC_MASK == Codec.ZSTD and version < _ZSTD_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {_ZSTD_FROM}")


def _close_on_error(answers: Answers) -> None:
    for topic, told in answers:
        for answer in told:
            if answer.error_code:
                code = ErrorCode(answer.error_code).name
                raise CloseConnection(f"acks=0 and {code} for partition {answer.partition} of {topic!r}")


class _Wait:
    """An answer that waits until every watermark has passed what the request appended, or its time is over."""

    def __init__(
        self,
        waiters: Waiters,
        header: RequestHeader,
        timeout_ms: int,
        answers: Answers,
        waits: list[tuple[Partition, int]],
    ) -> None:
        self.reply = Reply()
        self._header = header
        self._answers = answers
        self._open = dict(waits)
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, self._expire)
        self.reply.abandon = self._timer.cancel
        for partition, end in waits:
            waiters.when_passed(partition, end, partial(self._passed, partition))

    def _passed(self, partition: Partition) -> None:
        if self.reply.done or partition not in self._open:
            return
        end = self._open.pop(partition)
        if partition.high_watermark < end:
            self._fail(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        if not self._open:
            self._finish()

    def _expire(self) -> None:
        if not self.reply.done:
            for partition in self._open:
                self._fail(partition, ErrorCode.REQUEST_TIMED_OUT)
            self._finish()

    def _fail(self, partition: Partition, code: ErrorCode) -> None:
        """What was appended may not be promised: say so instead of its offset."""
        names = (partition.topic_id, partition.name.topic)
        for topic, told in self._answers:
            for slot, answer in enumerate(told):
                if topic in names and answer.partition == partition.name.partition and not answer.error_code:
                    told[slot] = ProduceAnswer(answer.partition, code)

    def _finish(self) -> None:
        self._timer.cancel()
        self.reply.complete(
            [encode_produce_response(self._header.api_version, self._header.correlation_id, self._answers)]
        )
