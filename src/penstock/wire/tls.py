"""TLS for the shells: a context made of settings, and what became of a handshake that failed."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from penstock.base.errors import KafkaError
from penstock.wire.errors import AuthenticationFailed, Disconnected, InvalidSecurity, Refused
from penstock.wire.security import Pem, Tls
from penstock.wire.security_names import CONVERSIONS

JKS_MAGIC = b"\xfe\xed\xfe\xed"
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----")
_LINE = 64


def context(settings: Tls) -> ssl.SSLContext:
    """InvalidSecurity where a file cannot be read, or holds something else."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = settings.check_host_name
    made.minimum_version = min(_VERSIONS[version] for version in settings.versions)
    made.maximum_version = max(_VERSIONS[version] for version in settings.versions)
    if settings.trusted is None:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        _trust(made, settings.trusted)
    if settings.chain is not None:
        _show(made, settings.chain, settings.key, settings.key_password)
    return made


def failure(place: str, error: OSError | UnicodeError) -> KafkaError:
    """A certificate that is not believed stays so; a connection that broke may be made again."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return AuthenticationFailed(place, "TLS", f"its certificate is not accepted: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return AuthenticationFailed(place, "TLS", str(error))
    if isinstance(error, ConnectionRefusedError):
        return Refused(f"{place}: {error}")
    return Disconnected(f"{place}: {str(error) or 'no connection in time'}")


def _trust(made: ssl.SSLContext, trusted: Pem) -> None:
    try:
        if trusted.path is None:
            made.load_verify_locations(cadata=_lines(trusted.text or ""))
        elif os.path.isdir(trusted.path):
            made.load_verify_locations(capath=trusted.path)
        else:
            _check_pem(trusted)
            made.load_verify_locations(cafile=trusted.path)
    except (OSError, ValueError) as error:
        raise _unusable(trusted, "certificates", error) from None


def _show(made: ssl.SSLContext, chain: Pem, key: Pem | None, password: str | None) -> None:
    try:
        with _file(chain) as chain_file, nullcontext() if key is None else _file(key) as key_file:
            # Without a password from us OpenSSL would ask the terminal for one.
            made.load_cert_chain(chain_file, key_file, lambda: password or "")
    except (OSError, ValueError) as error:
        hint = "" if password is not None else ", or the key has a password and ssl.key.password is not given"
        raise _unusable(key or chain, f"a certificate and its key{hint}", error) from None


@contextmanager
def _file(pem: Pem) -> Iterator[str]:
    """OpenSSL reads certificates and keys from files only: a text becomes one that has no name and is gone soon."""
    if pem.path is not None:
        _check_pem(pem)
        yield pem.path
        return
    with tempfile.TemporaryFile() as file:
        file.write(_lines(pem.text or "").encode())
        file.flush()
        yield f"/dev/fd/{file.fileno()}"


def _check_pem(pem: Pem) -> None:
    assert pem.path is not None
    with open(pem.path, "rb") as file:
        data = file.read()
    if b"-----BEGIN " not in data:
        kind = "JKS" if data.startswith(JKS_MAGIC) else "PKCS12"
        raise InvalidSecurity(f"{pem.option}: {pem.path} is no PEM file. If it is a {kind} store: {CONVERSIONS[kind]}")


def _lines(text: str) -> str:
    """Settings often lose the line ends of a PEM text, and OpenSSL insists on them."""

    def folded(match: re.Match[str]) -> str:
        name, body = match.group(1), "".join(match.group(2).split())
        lines = [body[at : at + _LINE] for at in range(0, len(body), _LINE)]
        return "\n".join(["", f"-----BEGIN {name}-----", *lines, f"-----END {name}-----", ""])

    return _BLOCK.sub(folded, text)


def _unusable(pem: Pem, what: str, error: Exception) -> InvalidSecurity:
    where = f" {pem.path}" if pem.path is not None else ""
    return InvalidSecurity(f"{pem.option}:{where} does not hold {what} that can be used ({error})")
