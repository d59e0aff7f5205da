from __future__ import annotations

from penstock.base.ids import TopicPartition
from penstock.protocol.generated.fetch_request import FetchRequest
from penstock.wire.sessions import FetchLimits, FetchSession, Wanted

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LIMITS = FetchLimits()


def want(offset: int, topic_id: bytes = b"i" * 16) -> Wanted:
    return Wanted(topic_id, offset, 1_000, 0, -1)


def named(request: FetchRequest) -> dict[int, int]:
    return {p.partition: p.fetch_offset for topic in request.topics for p in topic.partitions}


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def test_a_session_names_everything_first_and_then_only_what_changed() -> None:
    session = FetchSession()
    first = session.request({T0: want(0), T1: want(0)}, LIMITS)
    assert (first.session_id, first.session_epoch, named(first)) == (0, 0, {0: 0, 1: 0})
    session.on_answer(9)
    second = session.request({T0: want(5), T1: want(0)}, LIMITS)
    assert (second.session_id, second.session_epoch, named(second)) == (9, 1, {0: 5})
    session.on_answer(9)
    third = session.request({T1: want(0)}, LIMITS)
    assert (third.session_epoch, named(third), forgotten(third)) == (2, {}, [0])


def test_a_topic_made_anew_replaces_the_old_one_in_the_session() -> None:
    session = FetchSession()
    session.request({T0: want(5)}, LIMITS)
    session.on_answer(9)
    request = session.request({T0: want(0, b"j" * 16)}, LIMITS)
    assert named(request) == {0: 0}
    assert [topic.topic_id for topic in request.forgotten_topics_data] == [b"i" * 16]


def test_a_lost_session_begins_anew_with_everything() -> None:
    session = FetchSession()
    session.request({T0: want(0)}, LIMITS)
    session.on_answer(9)
    session.reset()
    request = session.request({T0: want(0)}, LIMITS)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, {0: 0})


def test_a_broker_that_keeps_no_session_is_told_everything_each_time() -> None:
    session = FetchSession()
    session.request({T0: want(0)}, LIMITS)
    session.on_answer(0)
    request = session.request({T0: want(0)}, LIMITS)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, {0: 0})


def test_without_sessions_epoch_minus_1_says_so() -> None:
    session = FetchSession(enabled=False)
    for _ in range(2):
        request = session.request({T0: want(0)}, LIMITS)
        assert (request.session_id, request.session_epoch, named(request)) == (0, -1, {0: 0})
        session.on_answer(0)
