"""How a client is safe: settings by the names of Kafka's Java clients and of librdkafka, checked and typed.

`parse(config)` gives a `Security`, a plain value that may be pickled and never shows a secret. Files are named here and
opened by `tls`, where the client is: a task's machine has them, the driver's perhaps not.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.wire.errors import InvalidSecurity
from penstock.wire.jaas import JaasError, Module
from penstock.wire.jaas import parse as parse_jaas
from penstock.wire.sasl import MECHANISMS, OAUTHBEARER, Credentials
from penstock.wire.security_names import (
    CONVERSIONS,
    FOLLOWED,
    LOGIN_MODULES,
    NAMES,
    NO_TOKENS,
    OF_NO_EFFECT,
    PREFIXES,
    PROTOCOL,
    PROTOCOLS,
    REFUSED,
    TLS_VERSIONS,
)


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key: a file, or the text itself."""

    option: str
    """which setting it came from, for what is said of a mistake."""
    path: str | None = None
    text: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    trusted: Pem | None = None
    """authorities whose certificates we believe; None: those that this machine believes."""
    chain: Pem | None = None
    """our own certificate; None: we show none."""
    key: Pem | None = None
    """its key; None: it is where the certificate is."""
    key_password: str | None = field(default=None, repr=False)
    check_host_name: bool = True
    versions: tuple[str, ...] = TLS_VERSIONS


@dataclass(frozen=True, slots=True)
class Security:
    tls: Tls | None = None
    credentials: Credentials | None = None


PLAINTEXT = Security()


def parse(config: Mapping[str, str], prefix: str = "") -> Security:
    """`prefix` is what the names had in front where the user wrote them. InvalidSecurity for what cannot be followed.
    As with Kafka's clients, settings that the protocol has no use for are left alone."""
    return _Settings(config, prefix).security()


def without(config: Mapping[str, str]) -> dict[str, str]:
    """The settings that are not about security, and so hold no secret."""
    return {name: value for name, value in config.items() if not _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIXES) or name in NAMES


class _Settings:
    def __init__(self, config: Mapping[str, str], prefix: str) -> None:
        self._values = {name: str(value) for name, value in config.items() if _is_ours(name)}
        self._prefix = prefix

    def security(self) -> Security:
        protocol = self._get(PROTOCOL, "PLAINTEXT").strip().upper()
        if protocol not in PROTOCOLS:
            raise self._refused(PROTOCOL, f"is one of {', '.join(PROTOCOLS)}")
        by_tls, by_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
        self._check_names([prefix for prefix, used in (("ssl.", by_tls), ("sasl.", by_sasl)) if used])
        return Security(self._tls() if by_tls else None, self._credentials() if by_sasl else None)

    def _check_names(self, used: list[str]) -> None:
        for name in self._values:
            if name in FOLLOWED or name in OF_NO_EFFECT or not any(f".{prefix}" in f".{name}" for prefix in used):
                continue
            if name in REFUSED:
                raise self._refused(name, f"cannot be followed: {REFUSED[name]}")
            close = difflib.get_close_matches(name, FOLLOWED, 1, 0.6)
            raise self._refused(name, "is not known" + (f"; did you mean {self._prefix}{close[0]}?" if close else ""))

    def _credentials(self) -> Credentials:
        mechanism = self._mechanism()
        jaas = self._values.get("sasl.jaas.config")
        if mechanism == OAUTHBEARER:
            raise self._refused(
                "sasl.mechanism", f"is OAUTHBEARER, and settings have no place for a token: {NO_TOKENS}"
            )
        if jaas is not None:
            options = self._jaas_options(jaas, mechanism)
            username, password = options["username"], options["password"]
        else:
            username, password = self._needed("sasl.username", mechanism), self._needed("sasl.password", mechanism)
        return Credentials(mechanism, username, password)

    def _mechanism(self) -> str:
        text = self._get("sasl.mechanism") or self._get("sasl.mechanisms")
        mechanism = text.strip().upper()
        if mechanism not in MECHANISMS:
            known = ", ".join(MECHANISMS)
            if not text or mechanism == "GSSAPI":
                raise self._refused("sasl.mechanism", f"is needed: one of {known}; GSSAPI (Kerberos) is not spoken")
            raise self._refused("sasl.mechanism", f"is one of {known}, not {text!r}")
        return mechanism

    def _jaas_options(self, text: str, mechanism: str) -> dict[str, str]:
        for name in ("sasl.username", "sasl.password"):
            if name in self._values:
                raise self._refused(name, f"and {self._prefix}sasl.jaas.config say the same: give one of them")
        try:
            module = parse_jaas(text)
        except JaasError as error:
            raise self._refused("sasl.jaas.config", f"cannot be read: {error}") from None
        self._check_module(module, mechanism)
        return module.options

    def _check_module(self, module: Module, mechanism: str) -> None:
        # A shaded Kafka has something in front of the package.
        known = next((name for name in LOGIN_MODULES if f".{module.name}".endswith(f".{name}")), None)
        if known is None or mechanism not in LOGIN_MODULES[known]:
            wanted = next(name for name, mechanisms in LOGIN_MODULES.items() if mechanism in mechanisms)
            raise self._refused("sasl.jaas.config", f"names {module.name}; {mechanism} needs {wanted}")
        for name in ("username", "password"):
            if name not in module.options:
                raise self._refused("sasl.jaas.config", f"has no {name}")
        other = next((name for name in module.options if name not in ("username", "password")), None)
        if other is not None:
            raise self._refused("sasl.jaas.config", f"has the option {other}, which cannot be followed")

    def _tls(self) -> Tls:
        chain, key = self._own_certificate()
        return Tls(
            trusted=self._trusted(),
            chain=chain,
            key=key,
            key_password=self._values.get("ssl.key.password"),
            check_host_name=self._check_host_name(),
            versions=self._versions(),
        )

    def _trusted(self) -> Pem | None:
        self._check_store("truststore")
        return self._one_of(
            ("ssl.truststore.location", "ssl.ca.location"), ("ssl.truststore.certificates", "ssl.ca.pem")
        )

    def _own_certificate(self) -> tuple[Pem | None, Pem | None]:
        """A keystore's file holds both; else there are two files or texts."""
        self._check_store("keystore")
        chain = self._one_of(
            ("ssl.keystore.location", "ssl.certificate.location"),
            ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        )
        key = self._one_of(("ssl.key.location",), ("ssl.keystore.key", "ssl.key.pem"))
        if key is not None and chain is None:
            raise self._refused(key.option, "is the key of a certificate that is not given")
        if key is None and chain is not None and chain.text is not None:
            raise self._refused(chain.option, "is a certificate whose key is not given")
        if key is not None and chain is not None and chain.option == "ssl.keystore.location":
            raise self._refused(key.option, f"and {self._prefix}{chain.option} say the same: give one of them")
        return chain, key

    def _check_store(self, store: str) -> None:
        kind = self._get(f"ssl.{store}.type").strip().upper()
        if kind not in ("", "PEM"):
            advice = CONVERSIONS.get(kind, "convert it")
            raise self._refused(
                f"ssl.{store}.type",
                f"is {kind}, and only PEM is read: {advice}; then say {self._prefix}ssl.{store}.type=PEM",
            )
        if kind == "PEM" and f"ssl.{store}.password" in self._values:
            hint = f"; a key's is {self._prefix}ssl.key.password" if store == "keystore" else ""
            raise self._refused(f"ssl.{store}.password", f"does not apply: a PEM file has no password{hint}")

    def _one_of(self, paths: tuple[str, ...], texts: tuple[str, ...]) -> Pem | None:
        given = [name for name in (*paths, *texts) if self._values.get(name)]
        if len(given) > 1:
            raise self._refused(given[0], f"and {self._prefix}{given[1]} say the same: give one of them")
        if not given:
            return None
        value = self._values[given[0]]
        return Pem(given[0], path=value) if given[0] in paths else Pem(given[0], text=value)

    def _check_host_name(self) -> bool:
        name = "ssl.endpoint.identification.algorithm"
        algorithm = self._get(name, "https").strip().lower()
        if algorithm not in ("https", "", "none"):
            raise self._refused(name, "is https, or empty where names are not to be checked")
        return algorithm == "https"

    def _versions(self) -> tuple[str, ...]:
        text = self._get("ssl.enabled.protocols") or ",".join(TLS_VERSIONS)
        versions = tuple(version.strip() for version in text.split(",") if version.strip())
        if not versions or any(version not in TLS_VERSIONS for version in versions):
            raise self._refused("ssl.enabled.protocols", f"lists some of {', '.join(TLS_VERSIONS)}, not {text!r}")
        return versions

    def _needed(self, name: str, mechanism: str) -> str:
        value = self._values.get(name)
        if value is None:
            raise self._refused(name, f"is needed for {mechanism}, or {self._prefix}sasl.jaas.config in its place")
        return value

    def _get(self, name: str, default: str = "") -> str:
        return self._values.get(name, default)

    def _refused(self, name: str, why: str) -> InvalidSecurity:
        return InvalidSecurity(f"{self._prefix}{name} {why}")
