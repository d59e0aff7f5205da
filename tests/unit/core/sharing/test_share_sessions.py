"""Share sessions: epochs, places, limits."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.sharing.sessions import ShareSessions

A, B, C = (b"a" * 16, 0), (b"a" * 16, 1), (b"b" * 16, 0)


def code(call, *arguments) -> ErrorCode:
    with pytest.raises(KafkaError) as fault:
        call(*arguments)
    return fault.value.code


def test_each_request_has_the_next_epoch():
    session = ShareSessions(10).begin("g", "m", "connection")
    session.advance(1)
    session.advance(2)
    assert code(session.advance, 2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    session.epoch = 2**31 - 1
    session.advance(2**31 - 1)
    session.advance(1)


def test_a_member_without_a_session_is_told_so():
    assert code(ShareSessions(10).find, "g", "m") is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_there_are_no_more_sessions_than_allowed_but_one_may_begin_again():
    sessions = ShareSessions(1)
    sessions.begin("g", "m", "connection")
    sessions.begin("g", "m", "another connection")
    assert code(sessions.begin, "g", "n", "connection") is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    sessions.end("g", "m")
    sessions.begin("g", "n", "connection")


def test_places_stay_until_they_are_forgotten_and_take_turns():
    session = ShareSessions(10).begin("g", "m", "connection")
    session.change([A, B, C], [])
    session.change([B], [A])
    assert [session.in_turn() for _ in range(3)] == [[B, C], [C, B], [B, C]]


def test_a_connection_knows_its_sessions_and_a_group_its_members():
    sessions = ShareSessions(10)
    mine, other = sessions.begin("g", "m", "here"), sessions.begin("g", "n", "there")
    assert sessions.owned_by("here") == [mine]
    sessions.end("g", "m")
    assert sessions.has("g") and sessions.owned_by("there") == [other]
    sessions.end("g", "n")
    assert not sessions.has("g")
