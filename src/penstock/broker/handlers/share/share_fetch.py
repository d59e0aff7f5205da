"""ShareFetch 1-2 (KIP-932): a member of a share group acquires records, and says what became of others.

Versions: 2+ has the acquire mode (KIP-1206) and requests that renew locks (KIP-1222). Acknowledgements are persisted
before records are looked for. The answer names only partitions that have records, an error, or acknowledgements to tell
of. Records are sent as they are in the log: of a batch, only what is in the acquired ranges is the member's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import groupby

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import REQUEST_ELEMENTS_MAX
from penstock.broker.cold_reads import warmed
from penstock.broker.handlers.share.asking import AcknowledgementBatch, member_of, readable, said
from penstock.broker.journal import Journal
from penstock.broker.leader_hints import Hints
from penstock.broker.network.reply import CloseConnection, Parts, Reply
from penstock.broker.network.session import Session
from penstock.broker.share_fetching import Outcome, Wanted, fetch
from penstock.core.sharing.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, ShareSession
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.share_fetch_request import ShareFetchRequest
from penstock.protocol.hot_share_fetch import NO_LEADER, SharedRecords, encode_share_fetch_response

log = Journal(__name__)

_RECORD_LIMIT = 1
"""the acquire mode in which never more records are acquired than asked for"""


def handle(session: Session, header: RequestHeader, body: bytearray | memoryview, at: int) -> Reply:
    request = ShareFetchRequest.decode(memoryview(body)[at:], header.api_version, REQUEST_ELEMENTS_MAX)
    reply = Reply()
    task = asyncio.get_running_loop().create_task(_serve(session, header, request, reply))
    reply.abandon = partial(_cancel, task)
    return reply


async def _serve(session: Session, header: RequestHeader, request: ShareFetchRequest, reply: Reply) -> None:
    try:
        parts = await _answer(session, header, request)
    except KafkaError as fault:
        parts = list(
            encode_share_fetch_response(header.correlation_id, [], error_code=fault.code, error_message=str(fault))
        )
    except Exception:
        log.exception("request failed", api="ShareFetch", version=header.api_version, client_id=session.client_id)
        reply.refuse(CloseConnection("ShareFetch failed unexpectedly"))
        return
    warm = warmed(session.services.jobs, parts)
    if isinstance(warm, Reply):
        warm.watch(lambda: reply.complete(parts))
    else:
        reply.complete(parts)


async def _answer(session: Session, header: RequestHeader, request: ShareFetchRequest) -> Parts:
    shares = session.services.shares
    group, member = member_of(session, request.group_id, request.member_id)
    acknowledged = said(_batches(request))
    _check(request, bool(acknowledged))
    try:
        share_session = shares.begin(group, member, request.share_session_epoch, session)
    except KafkaError as fault:
        if fault.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            # The client asks again at once: let it wait as long as if there were no records.
            await asyncio.sleep(max(request.max_wait_ms, 0) / 1000)
        raise
    session.at_close = lambda: shares.connection_lost(session)
    share_session.change(*_places(request))
    told = await shares.acknowledge(
        group, member, acknowledged, renewing=request.is_renew_ack, allowed=readable(session)
    )
    outcomes: list[Outcome] = []
    if request.share_session_epoch == FINAL_EPOCH:
        shares.end(group, member)
    elif not request.is_renew_ack:
        outcomes = await _fetched(session, share_session, request)
    return _encoded(session, header, told, outcomes, shares.settings.of(group).limits.lock_ms)


def _check(request: ShareFetchRequest, acknowledging: bool) -> None:
    if acknowledging and request.share_session_epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the first request of a share session acknowledges nothing")
    limits = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    if request.is_renew_ack and any(limits):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a request that renews locks fetches nothing")


def _batches(request: ShareFetchRequest) -> Iterator[tuple[Place, AcknowledgementBatch]]:
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                yield (topic.topic_id, partition.partition_index), batch


def _places(request: ShareFetchRequest) -> tuple[list[Place], list[Place]]:
    """What the session has from now on, and what it has no more."""
    wanted = [(topic.topic_id, one.partition_index) for topic in request.topics for one in topic.partitions]
    forgotten = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
    return wanted, forgotten


async def _fetched(session: Session, share_session: ShareSession, request: ShareFetchRequest) -> list[Outcome]:
    most = session.services.config.number("fetch.max.bytes")
    wanted = Wanted(
        request.max_wait_ms,
        min(request.min_bytes, most),
        min(request.max_bytes, most),
        request.max_records,
        request.batch_size,
        request.share_acquire_mode == _RECORD_LIMIT,
    )
    return await fetch(session.services.shares, share_session, session, wanted)


def _encoded(
    session: Session,
    header: RequestHeader,
    told: dict[Place, KafkaError | None],
    outcomes: list[Outcome],
    lock_ms: int,
) -> Parts:
    hints = Hints(session.services, session.peer.listener)
    rows: dict[Place, SharedRecords] = {}
    for outcome in outcomes:
        rows[outcome.place] = _row(outcome, hints)
    for (topic_id, index), fault in told.items():
        row = rows.get((topic_id, index), SharedRecords(index))
        if fault is not None:
            leader = hints.leader(topic_id, index, fault.code) or row.leader
            row = row._replace(acknowledge_error_code=fault.code, acknowledge_error_message=str(fault), leader=leader)
        rows[(topic_id, index)] = row
    ordered = sorted(rows.items(), key=lambda item: item[0][0])
    topics = [
        (topic_id, [row for _, row in group]) for topic_id, group in groupby(ordered, key=lambda item: item[0][0])
    ]
    endpoints = hints.endpoints()
    return list(encode_share_fetch_response(header.correlation_id, topics, lock_ms=lock_ms, endpoints=endpoints))


def _row(outcome: Outcome, hints: Hints) -> SharedRecords:
    (topic_id, index), fault, slices, acquired = outcome
    if fault is None:
        return SharedRecords(index, slices=slices, acquired=acquired)
    leader = hints.leader(topic_id, index, fault.code) or NO_LEADER
    return SharedRecords(index, fault.code, str(fault), leader=leader)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
