"""SCRAM as a client speaks it (RFC 5802, RFC 7677): both sides prove that they know the password, and neither tells it.

Texts are UTF-8 as they are: Kafka's brokers do not normalize user names and passwords (SASLprep) either.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from enum import Enum

from penstock.base.limits import SCRAM_ITERATIONS_MAX, SCRAM_ITERATIONS_MIN
from penstock.wire.sasl import Refused

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
NO_BINDING = "n,,"
"""neither channel binding nor another identity to act as."""


class Stage(Enum):
    NEW = "new"
    FIRST_SENT = "first sent"
    PROOF_SENT = "proof sent"
    DONE = "done"


class Scram:
    """One exchange. `nonce` is fresh for each: printable, without a comma."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        self._hash = HASHES[mechanism]
        self._password = password
        self._nonce = nonce
        self._first_bare = f"n={_escaped(username)},r={nonce}"
        self._signature = b""
        """what the broker has to show at the end."""
        self._stage = Stage.NEW

    def first(self) -> bytes:
        assert self._stage is Stage.NEW, "an exchange begins once"
        self._stage = Stage.FIRST_SENT
        return (NO_BINDING + self._first_bare).encode()

    def next(self, challenge: bytes) -> bytes | None:
        """What to send next; None: both sides have proved that they know the password."""
        if self._stage is Stage.FIRST_SENT:
            self._stage = Stage.PROOF_SENT
            return self._prove(_text(challenge))
        assert self._stage is Stage.PROOF_SENT, "nothing is expected before the beginning and after the end"
        self._stage = Stage.DONE
        self._check_signature(_text(challenge))
        return None

    def _prove(self, server_first: str) -> bytes:
        nonce, salt, iterations = self._parse(server_first)
        without_proof = f"c={_base64(NO_BINDING.encode())},r={nonce}"
        said = f"{self._first_bare},{server_first},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        client_signature = self._hmac(hashlib.new(self._hash, client_key).digest(), said)
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), said)
        proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
        return f"{without_proof},p={_base64(proof)}".encode()

    def _parse(self, server_first: str) -> tuple[str, bytes, int]:
        parts = server_first.split(",")
        if len(parts) < 3 or [part[:2] for part in parts[:3]] != ["r=", "s=", "i="]:
            raise Refused("the broker's first message is not one of SCRAM")
        nonce, salt, iterations = (part[2:] for part in parts[:3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise Refused("the broker's nonce does not continue ours: its message belongs to another exchange")
        if not (iterations.isascii() and iterations.isdigit() and len(iterations) <= 10):
            raise Refused("the broker's number of iterations is no number")
        if not SCRAM_ITERATIONS_MIN <= int(iterations) <= SCRAM_ITERATIONS_MAX:
            raise Refused(
                f"the broker asks for {iterations} iterations; {SCRAM_ITERATIONS_MIN} to {SCRAM_ITERATIONS_MAX} are "
                "accepted"
            )
        return nonce, _decoded(salt), int(iterations)

    def _check_signature(self, server_final: str) -> None:
        first = server_final.split(",")[0]
        if first.startswith("e="):
            raise Refused(f"the broker says {first[2:]}")
        if not first.startswith("v="):
            raise Refused("the broker's last message is not one of SCRAM")
        if not hmac.compare_digest(_decoded(first[2:]), self._signature):
            raise Refused("the broker does not know the password: its signature is wrong")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _escaped(username: str) -> str:
    return username.replace("=", "=3D").replace(",", "=2C")


def _text(challenge: bytes) -> str:
    try:
        return challenge.decode()
    except UnicodeDecodeError:
        raise Refused("the broker's message is no text") from None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused("the broker's message has a field that is not base64") from None
