"""Fetch 4-18, by hand: it is the hot path.

Versions: 4+ has isolation levels, 7+ sessions (KIP-227), 9+ leader epochs, 11+ the reader's rack, 12+ divergence, 13+
topic ids, 15+ the replica's state. A request with a replica id comes from a follower and needs CLUSTER_ACTION; this
broker has no followers, so each partition answers NOT_LEADER_OR_FOLLOWER to one.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.cold_reads import warmed
from penstock.broker.fetching import Outcome, Wanted
from penstock.broker.network.reply import Parts, Reply
from penstock.broker.network.session import Session
from penstock.core.replication.fetch_session import FetchSession
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.hot_fetch import (
    TOPIC_IDS_FROM,
    FetchCall,
    Fetched,
    decode_fetch_request,
    encode_fetch_response,
)

_READ_COMMITTED = 1


def handle(session: Session, header: RequestHeader, body: bytearray | memoryview, at: int) -> Parts | Reply:
    version = header.api_version
    call = decode_fetch_request(body, at, version)
    if call.replica_id >= 0:
        return _refuse_follower(session, header, call)
    fetching = session.services.fetching
    try:
        fetch_session = fetching.begin(
            call.session_id, call.session_epoch, version >= TOPIC_IDS_FROM, session.services.clock.monotonic_ms()
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
        for index, leader_epoch, offset, last_epoch, _, max_bytes, _, _ in partitions:
            place = fetch_session.put(topic, index)
            place.fetch_offset = offset
            place.max_bytes = max_bytes
            place.leader_epoch = leader_epoch
            place.last_fetched_epoch = last_epoch
    if len(fetch_session.places) > known:
        fetching.settle(fetch_session)
    wanted = Wanted(call.min_bytes, call.max_bytes, call.max_wait_ms, call.isolation_level == _READ_COMMITTED, session)
    answer: Parts | Reply = fetching.answer(fetch_session, wanted, partial(_encode, header, fetch_session))
    return warmed(session.services.jobs, answer) if isinstance(answer, list) else answer


def _encode(header: RequestHeader, session: FetchSession, outcomes: list[Outcome]) -> Parts:
    topics = [
        (topic, [_fetched(outcome) for outcome in group])
        for topic, group in groupby(outcomes, key=lambda outcome: outcome.place.topic)
    ]
    return _encoded(header, topics, session_id=session.id)


def _fetched(outcome: Outcome) -> Fetched:
    place, error, fetched = outcome
    if fetched is None:
        return Fetched(place.index, error)
    aborted = fetched.aborted
    return Fetched(
        place.index,
        0,
        fetched.high_watermark,
        fetched.last_stable_offset,
        fetched.log_start_offset,
        None if aborted is None else [(one.producer_id, one.first_offset) for one in aborted],
        -1,
        fetched.size_bytes,
        fetched.slices,
        fetched.diverging,
    )


def _encoded(
    header: RequestHeader,
    topics: list[tuple[str | bytes, list[Fetched]]],
    *,
    error_code: int = 0,
    session_id: int = 0,
) -> Parts:
    _, parts = encode_fetch_response(
        header.api_version, header.correlation_id, topics, error_code=error_code, session_id=session_id
    )
    return parts


def _refuse_follower(session: Session, header: RequestHeader, call: FetchCall) -> Parts:
    allowed = session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER)
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topics = [(topic, [Fetched(one.partition, code) for one in partitions]) for topic, partitions in call.topics]
    return _encoded(header, topics)
