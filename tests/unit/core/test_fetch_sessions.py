"""Fetch sessions (KIP-227): who is remembered, for how long, and what is told."""

from __future__ import annotations

import random

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.replication.fetch_session import NO_SESSION, FetchSession, FetchSessions


class Chance:
    def __init__(self) -> None:
        self._random = random.Random(1)

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def opened(sessions: FetchSessions, now_ms: int = 0) -> FetchSession:
    return sessions.begin(0, 0, True, now_ms)[0]


def test_a_session_goes_on_epoch_by_epoch():
    sessions = FetchSessions(Chance())
    session = opened(sessions)
    assert sessions.begin(session.id, 1, True, 0)[0] is session
    assert sessions.begin(session.id, 2, True, 0)[0] is session


@pytest.mark.parametrize(
    ("session_id", "epoch", "by_id", "code"),
    [
        (99, 1, True, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 7, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 1, False, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_request_that_does_not_fit_its_session_is_refused(session_id, epoch, by_id, code):
    sessions = FetchSessions(Chance())
    session = opened(sessions)
    with pytest.raises(KafkaError) as refused:
        sessions.begin(session.id if session_id is None else session_id, epoch, by_id, 0)
    assert refused.value.code is code


def test_epoch_0_ends_the_old_session_and_opens_another():
    sessions = FetchSessions(Chance())
    old = opened(sessions)
    new, ended = sessions.begin(old.id, 0, True, 0)
    assert ended == [old]
    assert new.id not in (NO_SESSION, old.id)


def test_the_final_epoch_ends_the_session_and_answers_without_one():
    sessions = FetchSessions(Chance())
    old = opened(sessions)
    last, ended = sessions.begin(old.id, -1, True, 0)
    assert (last.id, ended, len(sessions)) == (NO_SESSION, [old], 0)


def test_a_full_house_takes_nobody_in_until_somebody_was_silent_for_two_minutes():
    sessions = FetchSessions(Chance(), limit=2)
    first = opened(sessions, now_ms=0)
    opened(sessions, now_ms=50_000)
    assert opened(sessions, now_ms=119_999).id == NO_SESSION
    session, ended = sessions.begin(0, 0, True, 120_000)
    assert session.id != NO_SESSION
    assert ended == [first]


def test_the_session_that_takes_positions_beyond_the_limit_ends():
    sessions = FetchSessions(Chance(), positions_max=10)
    modest, greedy = opened(sessions), opened(sessions)
    for index in range(4):
        modest.put("t", index, 0)
    assert sessions.settle(modest) is None
    for index in range(7):
        greedy.put("t", index, 0)
    assert sessions.settle(greedy) is greedy
    assert len(sessions) == 1
    assert sessions.settle(modest) is None
