from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode
from penstock.protocol.frames import decode_request_header, response_frame
from penstock.protocol.generated.api_versions_response import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.metadata_request import MetadataRequest
from penstock.protocol.generated.metadata_response import MetadataResponse
from penstock.protocol.generated.produce_request import ProduceRequest
from penstock.protocol.message import Message
from penstock.wire.connection import Connection
from penstock.wire.conversation import Ticket
from penstock.wire.errors import Disconnected, UnsupportedVersion, Violation

SPOKEN = [
    ApiVersion(api_key=0, min_version=20, max_version=21),
    ApiVersion(api_key=3, min_version=0, max_version=11),
    ApiVersion(api_key=12, min_version=0, max_version=99),
]


def header_of(data: bytes) -> tuple[int, int, int]:
    header, _ = decode_request_header(data, 4)
    return header.api_key, header.api_version, header.correlation_id


def answer_to(data: bytes, message: Message, version: int | None = None) -> bytes:
    key, asked, correlation_id = header_of(data)
    version = asked if version is None else version
    return response_frame(key, asked, correlation_id, message.encode(version))


def ready_connection() -> Connection:
    connection = Connection("test", response_bytes_max=10_000)
    versions = ApiVersionsResponse(
        api_keys=SPOKEN,
        finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2)],
    )
    connection.receive(answer_to(connection.start(0), versions))
    return connection


def test_a_connection_first_asks_for_versions_and_then_is_ready() -> None:
    connection = Connection("test")
    first = connection.start(0)
    assert header_of(first)[0] == 18
    assert not connection.ready
    connection.receive(answer_to(first, ApiVersionsResponse(api_keys=SPOKEN)))
    assert connection.ready


def test_a_broker_that_refuses_our_api_versions_is_asked_in_a_version_that_it_lists() -> None:
    connection = Connection("test")
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)]
    )
    connection.receive(answer_to(connection.start(0), refusal, version=0))
    assert not connection.ready
    (second,) = connection.outbox
    assert header_of(bytes(second))[1] == 2
    connection.receive(answer_to(bytes(second), ApiVersionsResponse(api_keys=SPOKEN)))
    assert connection.ready


def test_a_refusal_that_lists_nothing_leads_to_version_0() -> None:
    connection = Connection("test")
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    connection.receive(answer_to(connection.start(0), refusal, version=0))
    assert header_of(bytes(connection.outbox[0]))[1] == 0


def test_a_request_goes_out_in_the_newest_version_that_both_know() -> None:
    connection = ready_connection()
    assert header_of(connection.send(MetadataRequest(), Ticket(), now_ms=0))[:2] == (3, 11)
    assert header_of(connection.send(HeartbeatRequest(), Ticket(), now_ms=0))[:2] == (12, HeartbeatRequest.MAX_VERSION)
    assert header_of(connection.send(MetadataRequest(), Ticket(), now_ms=0, max_version=8))[:2] == (3, 8)


def test_no_common_version_is_said_before_anything_is_sent() -> None:
    connection = ready_connection()
    with pytest.raises(UnsupportedVersion, match="no common version of Produce"):
        connection.send(ProduceRequest(), Ticket(), now_ms=0)
    assert connection.in_flight == 0


def test_an_api_that_the_broker_does_not_list_is_unsupported() -> None:
    connection = Connection("test")
    connection.receive(answer_to(connection.start(0), ApiVersionsResponse()))
    with pytest.raises(UnsupportedVersion, match="does not offer Heartbeat"):
        connection.send(HeartbeatRequest(), Ticket(), now_ms=0)


def test_finalized_features_are_known_after_the_handshake() -> None:
    assert ready_connection().features == {"transaction.version": 2}


def test_pipelined_requests_complete_in_order() -> None:
    connection = ready_connection()
    first, second = Ticket(), Ticket()
    one = connection.send(HeartbeatRequest(), first, now_ms=0)
    two = connection.send(MetadataRequest(), second, now_ms=0)
    heartbeat, metadata = HeartbeatResponse(throttle_time_ms=7), MetadataResponse(cluster_id="c")
    assert connection.receive(answer_to(one, heartbeat) + answer_to(two, metadata)) == [first, second]
    assert first.result() == heartbeat
    assert second.result().cluster_id == "c"


def test_an_answer_out_of_order_is_a_violation() -> None:
    connection = ready_connection()
    connection.send(HeartbeatRequest(), Ticket(), now_ms=0)
    second = connection.send(HeartbeatRequest(), Ticket(), now_ms=0)
    with pytest.raises(Violation, match="was expected"):
        connection.receive(answer_to(second, HeartbeatResponse()))


def test_an_answer_nobody_asked_for_is_a_violation() -> None:
    connection = ready_connection()
    with pytest.raises(Violation, match="without being asked"):
        connection.receive(response_frame(12, 4, 9, HeartbeatResponse().encode(4)))


def test_an_undecodable_answer_is_a_violation() -> None:
    connection = ready_connection()
    sent = connection.send(MetadataRequest(), Ticket(), now_ms=0)
    with pytest.raises(Violation, match="undecodable"):
        connection.receive(response_frame(3, 11, header_of(sent)[2], b"\xff\xff\xff\xff\xff"))


def test_an_answer_above_the_limit_is_a_violation() -> None:
    connection = ready_connection()
    connection.send(HeartbeatRequest(), Ticket(), now_ms=0)
    with pytest.raises(Violation):
        connection.receive((10_001).to_bytes(4, "big"))


def test_the_deadline_is_that_of_the_most_urgent_request() -> None:
    connection = ready_connection()
    assert connection.deadline_ms() is None
    connection.send(HeartbeatRequest(), Ticket(), now_ms=100, timeout_ms=5_000)
    connection.send(HeartbeatRequest(), Ticket(), now_ms=100, timeout_ms=1_000)
    assert connection.deadline_ms() == 1_100


def test_a_lost_connection_fails_everything_in_flight() -> None:
    connection = ready_connection()
    ticket = Ticket()
    connection.send(HeartbeatRequest(), ticket, now_ms=0)
    connection.lost(Disconnected("gone"))
    assert not connection.ready
    with pytest.raises(Disconnected):
        ticket.result()


def test_a_request_without_an_answer_leaves_nothing_in_flight() -> None:
    connection = ready_connection()
    connection.send(HeartbeatRequest(), Ticket(), now_ms=0, answered=False)
    assert connection.in_flight == 0


def test_an_alert_of_tls_is_told_from_an_answer() -> None:
    connection = Connection("test")
    connection.start(0)
    with pytest.raises(Violation, match=r"this is TLS: set security\.protocol"):
        connection.receive(b"\x15\x03\x03\x00\x02\x02\x46")
