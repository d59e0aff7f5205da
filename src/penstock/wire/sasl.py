"""SASL's mechanisms as a client speaks them: small machines that are handed challenges and say what to send.

PLAIN and OAUTHBEARER are here, SCRAM has a file of its own. What they need of chance is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

PLAIN = "PLAIN"
SCRAM_SHA_256 = "SCRAM-SHA-256"
SCRAM_SHA_512 = "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)

BAD_TOKEN = b"\x01"
"""what a client answers to an OAUTHBEARER server that explained why it refuses; then comes the refusal."""


class Refused(Exception):
    """One side does not accept what the other said; the text says why, and never holds a secret."""


class Exchange(Protocol):
    """One authentication by one mechanism."""

    def first(self) -> bytes:
        """What to begin with."""

    def next(self, challenge: bytes) -> bytes | None:
        """What to send next; None where the exchange is over and succeeded."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are, and how we show it."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: str | Callable[[], str] = field(default="", repr=False)
    """for OAUTHBEARER: the token, or what returns one at once whenever a connection needs it."""


class Plain:
    """The password itself: only for connections that nobody else can read (RFC 4616)."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        return None


class OAuthBearer:
    """A token that somebody else vouches for (RFC 7628)."""

    def __init__(self, token: str) -> None:
        self._message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        return BAD_TOKEN if challenge else None
