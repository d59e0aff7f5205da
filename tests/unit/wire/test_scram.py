"""SCRAM by the example of RFC 7677, and against a broker that lies."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from penstock.wire.sasl import Refused
from penstock.wire.scram import Scram

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def begun(username: str = "user", password: str = "pencil", mechanism: str = "SCRAM-SHA-256") -> Scram:
    exchange = Scram(mechanism, username, password, NONCE)
    exchange.first()
    return exchange


def refusal(challenge: str, *, after: str | None = None) -> str:
    exchange = begun()
    if after is not None:
        exchange.next(after.encode())
    with pytest.raises(Refused) as caught:
        exchange.next(challenge.encode())
    return str(caught.value)


def test_the_example_of_rfc_7677() -> None:
    exchange = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    assert exchange.first() == f"n,,n=user,r={NONCE}".encode()
    assert exchange.next(SERVER_FIRST.encode()) == CLIENT_FINAL.encode()
    assert exchange.next(SERVER_FINAL.encode()) is None


def test_a_server_that_keeps_what_kafka_keeps_accepts_the_proof_by_sha_512() -> None:
    """It has the hash of the client's key and the server's key, neither of which gives the password away."""
    salt, iterations = b"salt of the server", 8_192
    salted = hashlib.pbkdf2_hmac("sha512", "pässword,=".encode(), salt, iterations)
    stored = hashlib.sha512(hmac.digest(salted, b"Client Key", "sha512")).digest()
    exchange = Scram("SCRAM-SHA-512", "us,er=", "pässword,=", NONCE)
    first = exchange.first().decode()
    assert first == f"n,,n=us=2Cer=3D,r={NONCE}"
    server_first = f"r={NONCE}more,s={base64.b64encode(salt).decode()},i={iterations}"
    final = (exchange.next(server_first.encode()) or b"").decode()
    without_proof, _, proof = final.rpartition(",p=")
    said = f"{first[3:]},{server_first},{without_proof}".encode()
    signature = hmac.digest(stored, said, "sha512")
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.sha512(key).digest() == stored
    shown = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), said, "sha512")
    assert exchange.next(b"v=" + base64.b64encode(shown)) is None


@pytest.mark.parametrize(
    ("server_first", "said"),
    [
        (f"r={NONCE},s=c2FsdA==,i=4096", "does not continue ours"),
        ("r=another,s=c2FsdA==,i=4096", "does not continue ours"),
        (f"r={NONCE}x,s=c2FsdA==,i=4095", "asks for 4095 iterations; 4096 to 262144"),
        (f"r={NONCE}x,s=c2FsdA==,i=262145", "asks for 262145 iterations"),
        (f"r={NONCE}x,s=c2FsdA==,i=99999999999", "is no number"),
        (f"r={NONCE}x,s=c2FsdA==,i=-4096", "is no number"),
        (f"r={NONCE}x,s=c2FsdA==,i=٤٠٩٦", "is no number"),
        (f"r={NONCE}x,s=not base64,i=4096", "is not base64"),
        (f"m=new,r={NONCE}x,s=c2FsdA==,i=4096", "is not one of SCRAM"),
        (f"s=c2FsdA==,r={NONCE}x,i=4096", "is not one of SCRAM"),
        ("", "is not one of SCRAM"),
    ],
)
def test_a_first_message_that_is_wrong_is_refused(server_first: str, said: str) -> None:
    assert said in refusal(server_first)


@pytest.mark.parametrize(
    ("server_final", "said"),
    [
        ("v=" + base64.b64encode(bytes(32)).decode(), "does not know the password"),
        ("v=", "does not know the password"),
        ("v=%%", "is not base64"),
        ("e=other-error", "the broker says other-error"),
        ("", "is not one of SCRAM"),
    ],
)
def test_a_broker_that_cannot_show_the_password_is_refused(server_final: str, said: str) -> None:
    assert said in refusal(server_final, after=SERVER_FIRST)


def test_a_challenge_that_is_no_text_is_refused() -> None:
    with pytest.raises(Refused, match="no text"):
        begun().next(b"\xff\xfe")


def test_nothing_shows_the_password() -> None:
    exchange = begun(password="hush-hush")
    assert "hush-hush" not in repr(exchange)
    assert b"hush-hush" not in (exchange.next(SERVER_FIRST.encode()) or b"")
