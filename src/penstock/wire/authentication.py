"""Authentication over a connection: which mechanism, then its messages, until the broker says how long that holds.

SaslHandshake names the mechanism, SaslAuthenticate carries what the mechanism says (KIP-43, KIP-152). A session that
ends (KIP-368) is renewed by the same requests on the same connection.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.generated.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.generated.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.generated.sasl_handshake_response import SaslHandshakeResponse
from penstock.protocol.message import Message
from penstock.wire.errors import AuthenticationFailed, error_code
from penstock.wire.sasl import OAUTHBEARER, PLAIN, Credentials, Exchange, OAuthBearer, Plain, Refused
from penstock.wire.scram import Scram

NONCE_BYTES = 24
RENEW_PERCENT = (85, 95)
"""of a session, after which it is renewed: somewhere between, so that clients do not come all at once."""


class Login:
    """Credentials and the chance that using them needs: begins an exchange for each connection and each renewal."""

    def __init__(self, credentials: Credentials, below: Callable[[int], int]) -> None:
        self.credentials = credentials
        self._below = below
        """a number 0 <= n < bound that nobody can foresee."""

    def exchange(self) -> Exchange:
        own = self.credentials
        if own.mechanism == PLAIN:
            return Plain(own.username, own.password)
        if own.mechanism == OAUTHBEARER:
            return OAuthBearer(self._token())
        return Scram(own.mechanism, own.username, own.password, self._nonce())

    def renew_after_ms(self, lifetime_ms: int) -> int:
        """When to authenticate again, in a session that the broker ends after `lifetime_ms`."""
        low, high = RENEW_PERCENT
        return lifetime_ms * (low + self._below(high - low + 1)) // 100

    def _token(self) -> str:
        token = self.credentials.token
        if isinstance(token, str):
            return token
        try:
            return token()
        except Exception as error:
            # Its text stays its own: nobody knows what it holds.
            raise Refused(f"the function that gives the token raised {type(error).__name__}") from error

    def _nonce(self) -> str:
        drawn = self._below(1 << 8 * NONCE_BYTES).to_bytes(NONCE_BYTES, "big")
        return base64.b64encode(drawn).decode()


class Authentication:
    """One of them. `place` is the broker's address, for what is said of a failure."""

    def __init__(self, login: Login, place: str) -> None:
        self._credentials = login.credentials
        self._place = place
        try:
            self._exchange = login.exchange()
        except Refused as refused:
            raise self._failed(str(refused)) from refused
        self.lifetime_ms = 0
        """ms until the broker wants to see the credentials again; 0: never."""

    def first(self) -> Message:
        return SaslHandshakeRequest(mechanism=self._credentials.mechanism)

    def next(self, answer: Message) -> Message | None:
        """What to send next; None where we are who we said we are. AuthenticationFailed where not."""
        if isinstance(answer, SaslHandshakeResponse):
            self._check_mechanism(answer)
            return SaslAuthenticateRequest(auth_bytes=self._exchange.first())
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code:
            code = error_code(answer.error_code)
            raise self._failed(answer.error_message or code.name, code)
        try:
            reply = self._exchange.next(bytes(answer.auth_bytes))
        except Refused as refused:
            raise self._failed(str(refused)) from None
        self.lifetime_ms = answer.session_lifetime_ms
        return None if reply is None else SaslAuthenticateRequest(auth_bytes=reply)

    def _check_mechanism(self, answer: SaslHandshakeResponse) -> None:
        if answer.error_code:
            code = error_code(answer.error_code)
            offered = ", ".join(answer.mechanisms) or "none"
            raise self._failed(f"{code.name}; the mechanisms of this listener: {offered}", code)

    def _failed(self, cause: str, code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED) -> AuthenticationFailed:
        return AuthenticationFailed(self._place, self._credentials.mechanism, cause, code)
