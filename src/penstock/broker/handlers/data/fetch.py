"""Fetch 4-18, by hand: it is the hot path.

Versions: 4+ has isolation levels, 7+ sessions (KIP-227), 9+ leader epochs, 11+ the reader's rack, 12+ divergence, 13+
topic ids, 15+ the replica's state, 16+ who leads instead and where it is (KIP-951). A request with a replica id comes
from a follower and needs CLUSTER_ACTION: else anyone could say that something is on all copies. From version 11 on a
consumer may read from a follower; where `replica.selector.class` is set, the leader tells it of one in its rack
(KIP-392).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.cold_reads import warmed
from penstock.broker.fetching import CONSUMER, Wanted
from penstock.broker.leader_hints import Hints
from penstock.broker.network.reply import Parts, Reply
from penstock.broker.network.session import Session
from penstock.broker.outcomes import Outcome
from penstock.core.replication.fetch_session import FetchSession
from penstock.core.replication.partition import Fetched as Read
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.hot_fetch import (
    TOPIC_IDS_FROM,
    FetchCall,
    Fetched,
    decode_fetch_request,
    encode_fetch_response,
)
from penstock.protocol.hot_parts import Endpoint

_READ_COMMITTED = 1
_FOLLOWERS_FROM = 11
"""the version from which on a consumer knows that it may read from a follower"""


def handle(session: Session, header: RequestHeader, body: bytearray | memoryview, at: int) -> Parts | Reply:
    version = header.api_version
    call = decode_fetch_request(body, at, version)
    from_follower = call.replica_id >= 0
    if from_follower and not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return _refuse_follower(header, call)
    fetching = session.services.fetching
    now_ms = session.services.clock.monotonic_ms()
    try:
        fetch_session = fetching.begin(
            call.session_id, call.session_epoch, version >= TOPIC_IDS_FROM, now_ms, from_follower=from_follower
        )
    except KafkaError as fault:
        return _encoded(header, [], error_code=fault.code)
    for topic, indexes in call.forgotten:
        for index in indexes:
            dropped = fetch_session.drop(topic, index)
            if dropped is not None:
                fetching.unwatch(dropped)
    known = len(fetch_session.places)
    for topic, partitions in call.topics:
        for index, leader_epoch, offset, last_epoch, log_start, max_bytes, _, _ in partitions:
            fetch_session.put(topic, index, offset).named(leader_epoch, last_epoch, log_start, max_bytes)
    if len(fetch_session.places) > known:
        fetching.settle(fetch_session)
    wanted = Wanted(
        call.min_bytes,
        call.max_bytes,
        call.max_wait_ms,
        call.isolation_level == _READ_COMMITTED,
        session,
        version < _FOLLOWERS_FROM,
        call.rack_id,
        max(call.replica_id, CONSUMER),
        call.replica_epoch,
        now_ms,
    )
    answer: Parts | Reply = fetching.answer(fetch_session, wanted, partial(_encode, session, header, fetch_session))
    return warmed(session.services.jobs, answer) if isinstance(answer, list) else answer


def _encode(session: Session, header: RequestHeader, fetch_session: FetchSession, outcomes: list[Outcome]) -> Parts:
    hints: Hints | None = None
    topics: list[tuple[str | bytes, list[Fetched]]] = []
    told: list[Fetched] = []
    for place, error, fetched in outcomes:
        topic = place.topic
        if not topics or topics[-1][0] != topic:
            told = []
            topics.append((topic, told))
        if fetched is None:
            hints = hints or Hints(session.services, session.peer.listener)
            told.append(Fetched(place.index, error, leader=hints.leader(topic, place.index, error)))
        else:
            told.append(_fetched(place.index, fetched))
    endpoints = hints.endpoints() if hints is not None else ()
    return _encoded(header, topics, session_id=fetch_session.id, endpoints=endpoints)


def _fetched(index: int, fetched: Read) -> Fetched:
    slices, size_bytes, high_watermark, last_stable_offset, log_start, aborted, diverging, preferred = fetched
    told = None if aborted is None else [(one.producer_id, one.first_offset) for one in aborted]
    return Fetched(
        index, 0, high_watermark, last_stable_offset, log_start, told, preferred, size_bytes, slices, diverging
    )


def _encoded(
    header: RequestHeader,
    topics: list[tuple[str | bytes, list[Fetched]]],
    *,
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> Parts:
    _, parts = encode_fetch_response(
        header.api_version,
        header.correlation_id,
        topics,
        error_code=error_code,
        session_id=session_id,
        endpoints=endpoints,
    )
    return parts


def _refuse_follower(header: RequestHeader, call: FetchCall) -> Parts:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topics = [(topic, [Fetched(one.partition, code) for one in partitions]) for topic, partitions in call.topics]
    return _encoded(header, topics)
