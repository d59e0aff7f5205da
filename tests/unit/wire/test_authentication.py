"""A connection that has to say who it is: which requests it sends of its own, when it is ready, when it asks again."""

from __future__ import annotations

import pytest

from penstock.base.errors import RETRIABLE, ErrorCode
from penstock.protocol.frames import decode_request_header, response_frame
from penstock.protocol.generated.api_versions_response import ApiVersion, ApiVersionsResponse
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.generated.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.generated.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.generated.sasl_handshake_response import SaslHandshakeResponse
from penstock.protocol.message import Message
from penstock.protocol.registry import APIS
from penstock.wire.authentication import Login
from penstock.wire.connection import Connection
from penstock.wire.conversation import Ticket
from penstock.wire.errors import AuthenticationFailed, UnsupportedVersion
from penstock.wire.sasl import Credentials

SPOKEN = [ApiVersion(api_key=k, min_version=a.min_version, max_version=a.max_version) for k, a in APIS.items()]
SECRET = "hush-hush"


class Talk:
    """A connection and what it sent."""

    def __init__(self, credentials: Credentials, below: int = 0, spoken: list[ApiVersion] = SPOKEN) -> None:
        login = Login(credentials, lambda bound: min(below, bound - 1))
        self.connection = Connection("test", login=login, place="broker-1:9093")
        self.sent = self.connection.start(0)
        self.answer(ApiVersionsResponse(api_keys=spoken))

    def answer(self, message: Message) -> None:
        header, _ = decode_request_header(self.sent, 4)
        frame = response_frame(
            header.api_key, header.api_version, header.correlation_id, message.encode(header.api_version)
        )
        self.connection.receive(frame)

    def asked(self) -> Message:
        """The one request that the connection has to say."""
        (data,) = self.connection.outbox
        self.connection.outbox.clear()
        self.sent = bytes(data)
        header, at = decode_request_header(self.sent, 4)
        kinds: list[type[Message]] = [SaslHandshakeRequest, SaslAuthenticateRequest]
        (kind,) = (kind for kind in kinds if header.api_key == kind.API_KEY)
        return kind.decode(self.sent[at:], header.api_version)

    def authenticate(self, lifetime_ms: int = 0) -> None:
        """As PLAIN does it."""
        self.asked()
        self.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))
        self.asked()
        self.answer(SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms))


def plain() -> Credentials:
    return Credentials("PLAIN", "alice", SECRET)


def failure(talk: Talk, message: Message) -> AuthenticationFailed:
    with pytest.raises(AuthenticationFailed) as caught:
        talk.answer(message)
    assert caught.value.code not in RETRIABLE
    assert "broker-1:9093" in str(caught.value)
    assert SECRET not in str(caught.value)
    return caught.value


def test_plain_names_its_mechanism_then_shows_the_password_and_is_ready() -> None:
    talk = Talk(plain())
    assert talk.asked() == SaslHandshakeRequest(mechanism="PLAIN")
    talk.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert talk.asked() == SaslAuthenticateRequest(auth_bytes=b"\0alice\0hush-hush")
    assert not talk.connection.ready
    talk.answer(SaslAuthenticateResponse())
    assert talk.connection.ready
    assert talk.connection.in_flight == 0


def test_a_token_is_asked_for_anew_by_each_authentication() -> None:
    tokens = iter(["first", "second"])
    talk = Talk(Credentials("OAUTHBEARER", token=lambda: next(tokens)))
    talk.asked()
    talk.answer(SaslHandshakeResponse())
    assert talk.asked() == SaslAuthenticateRequest(auth_bytes=b"n,,\x01auth=Bearer first\x01\x01")
    talk.answer(SaslAuthenticateResponse(session_lifetime_ms=10_000))
    assert not talk.connection.admits(9_000)
    talk.asked()
    talk.answer(SaslHandshakeResponse())
    assert talk.asked() == SaslAuthenticateRequest(auth_bytes=b"n,,\x01auth=Bearer second\x01\x01")


def test_a_refused_token_is_acknowledged_so_that_the_broker_says_why() -> None:
    talk = Talk(Credentials("OAUTHBEARER", token=SECRET))
    talk.asked()
    talk.answer(SaslHandshakeResponse())
    talk.asked()
    talk.answer(SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'))
    assert talk.asked() == SaslAuthenticateRequest(auth_bytes=b"\x01")
    refusal = SaslAuthenticateResponse(error_code=58, error_message='{"status":"invalid_token"}')
    assert failure(talk, refusal).cause == '{"status":"invalid_token"}'


def test_a_token_that_cannot_be_had_is_a_failure_without_its_text() -> None:
    def broken() -> str:
        raise RuntimeError(SECRET)

    with pytest.raises(AuthenticationFailed, match="raised RuntimeError") as caught:
        Talk(Credentials("OAUTHBEARER", token=broken))
    assert SECRET not in str(caught.value)


def test_scram_draws_its_nonce_from_the_chance_it_is_given() -> None:
    talk = Talk(Credentials("SCRAM-SHA-512", "alice", SECRET), below=1 << 191)
    talk.asked()
    talk.answer(SaslHandshakeResponse())
    assert talk.asked() == SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=" + b"g" + b"A" * 31)


def test_a_refused_password_is_told_with_broker_mechanism_and_cause() -> None:
    talk = Talk(plain())
    talk.asked()
    talk.answer(SaslHandshakeResponse())
    talk.asked()
    error = failure(talk, SaslAuthenticateResponse(error_code=58, error_message="Invalid username or password"))
    assert error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert (error.place, error.mechanism, error.cause) == ("broker-1:9093", "PLAIN", "Invalid username or password")
    assert not talk.connection.ready


def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are() -> None:
    talk = Talk(plain())
    talk.asked()
    error = failure(talk, SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-256", "GSSAPI"]))
    assert error.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert "SCRAM-SHA-256, GSSAPI" in error.cause


def test_a_broker_that_cannot_prove_itself_is_not_believed() -> None:
    talk = Talk(Credentials("SCRAM-SHA-256", "alice", SECRET))
    talk.asked()
    talk.answer(SaslHandshakeResponse())
    talk.asked()
    talk.answer(SaslAuthenticateResponse(auth_bytes=b"r=" + b"A" * 32 + b"B,s=c2FsdA==,i=4096"))
    talk.asked()
    assert "does not know the password" in failure(talk, SaslAuthenticateResponse(auth_bytes=b"v=AAAA")).cause


def test_a_broker_without_sasl_is_told_before_any_password() -> None:
    spoken = [one for one in SPOKEN if one.api_key not in (17, 36)]
    with pytest.raises(UnsupportedVersion, match="does not offer SaslHandshake"):
        Talk(plain(), spoken=spoken)


def test_the_time_to_connect_includes_authentication() -> None:
    talk = Talk(plain())
    assert talk.connection.deadline_ms() == 30_000
    talk.asked()
    talk.answer(SaslHandshakeResponse())
    assert talk.connection.deadline_ms() == 30_000


@pytest.mark.parametrize(("below", "due_ms"), [(0, 8_500), (10, 9_500)])
def test_a_session_is_renewed_before_it_ends(below: int, due_ms: int) -> None:
    talk = Talk(plain(), below)
    talk.authenticate(lifetime_ms=10_000)
    assert talk.connection.admits(due_ms - 1)
    assert not talk.connection.outbox
    assert not talk.connection.admits(due_ms)
    assert not talk.connection.admits(due_ms + 1), "one renewal at a time"
    talk.authenticate(lifetime_ms=10_000)
    assert talk.connection.admits(2 * due_ms - 1)
    assert not talk.connection.admits(2 * due_ms)


def test_a_session_without_an_end_is_never_renewed() -> None:
    talk = Talk(plain())
    talk.authenticate(lifetime_ms=0)
    assert talk.connection.admits(1 << 60)


def test_requests_before_a_renewal_are_answered_before_it() -> None:
    talk = Talk(plain())
    talk.authenticate(lifetime_ms=10_000)
    ticket = Ticket()
    before = talk.connection.send(HeartbeatRequest(), ticket, now_ms=8_000)
    assert not talk.connection.admits(9_000)
    talk.asked()
    renewal, talk.sent = talk.sent, before
    talk.answer(HeartbeatResponse(throttle_time_ms=7))
    assert ticket.result().throttle_time_ms == 7
    assert not talk.connection.ready
    talk.sent = renewal
    talk.answer(SaslHandshakeResponse())
    talk.asked()
    talk.answer(SaslAuthenticateResponse(session_lifetime_ms=10_000))
    assert talk.connection.ready


def test_a_lost_connection_does_not_renew() -> None:
    talk = Talk(plain())
    talk.authenticate(lifetime_ms=10_000)
    talk.connection.lost(AuthenticationFailed("here", "PLAIN", "no"))
    assert not talk.connection.admits(20_000)
    assert not talk.connection.outbox


def test_nothing_of_a_login_shows_the_password() -> None:
    login = Login(plain(), lambda bound: 0)
    assert SECRET not in repr(login.credentials) + repr(login) + repr(login.exchange())
