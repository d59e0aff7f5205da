"""A real Apache Kafka whose listeners ask who is there: TLS, certificates of clients, SASL, sessions that end."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

from tests.certificates import Certificates, make
from tests.conformance.apache import CLUSTER_ID, ApacheKafka, free_ports

USER = "alice"
PASSWORD = "it's a; secret!"
SESSION_MS = 4_000
"""of connections to the listener RENEWED. Brokers allow no renewal within a second of the last, and what a client sends
just before it renews must reach a busy broker in time."""
LISTENERS = {
    "SSL": "SSL",
    "MUTUAL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "RENEWED": "SASL_PLAINTEXT",
}
"""protocols by the names of listeners, beside the plain one."""

_PACKAGE = "org.apache.kafka.common.security"
SCRAM_MODULE = f"{_PACKAGE}.scram.ScramLoginModule"
PLAIN_MODULE = f"{_PACKAGE}.plain.PlainLoginModule"
OAUTH_MODULE = f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule"


def quoted(text: str) -> str:
    """As a value of JAAS."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def jaas(module: str, password: str = PASSWORD) -> str:
    """As a client of Java would be told."""
    return f"{module} required username={quoted(USER)} password={quoted(password)};"


def token(user: str = USER, lifetime_s: int = 3_600) -> str:
    """A JWT that nobody signed: what brokers accept where nobody told them whom to trust."""
    now_s = int(time.time())
    parts = [{"alg": "none"}, {"sub": user, "iat": now_s, "exp": now_s + lifetime_s}]
    return ".".join(base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts) + "."


class SecureKafka(ApacheKafka):
    def __init__(self, directory: Path) -> None:
        self.certificates: Certificates = make(directory / "certificates")
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        super().__init__(directory)

    def __enter__(self) -> SecureKafka:
        users = [f"SCRAM-SHA-{size}=[name={USER},password={PASSWORD}]" for size in (256, 512)]
        added = [part for user in users for part in ("--add-scram", user)]
        self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._properties), *added)
        self.start()
        return self

    def at(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def settings(self, listener: str, mechanism: str = "", password: str = PASSWORD) -> dict[str, str]:
        """What a client of that listener has to be told, by the names of Java's clients."""
        protocol = LISTENERS[listener]
        given = {"security.protocol": protocol}
        if protocol.endswith("SSL"):
            given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.certificates.authority)}
        if listener == "MUTUAL":
            given |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificates.both("client"))}
        if mechanism:
            module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
            given |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas(module, password)}
        return given

    def _write_properties(self, overrides: dict[str, str]) -> Path:
        named = "".join(f",{name}://localhost:{port}" for name, port in self.ports.items())
        plain = f"PLAINTEXT://127.0.0.1:{self._port}"
        kinds = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **LISTENERS}
        return super()._write_properties(
            {
                "listeners": f"{plain},CONTROLLER://127.0.0.1:{self._controller_port}{named}",
                "advertised.listeners": plain + named,
                "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in kinds.items()),
                "inter.broker.listener.name": "PLAINTEXT",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.certificates.both("broker")),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.certificates.authority),
                "listener.name.mutual.ssl.client.auth": "required",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
                "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "listener.name.renewed.sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "listener.name.renewed.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS),
                **_logins(),
                **overrides,
            }
        )


def _logins() -> dict[str, str]:
    scram = f"{SCRAM_MODULE} required;"
    plain = f"{PLAIN_MODULE} required user_{USER}={quoted(PASSWORD)};"
    oauth = f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";'
    by_listener = {
        "sasl_plaintext": {"plain": plain, "scram-sha-256": scram, "scram-sha-512": scram, "oauthbearer": oauth},
        "sasl_ssl": {"scram-sha-512": scram},
        "renewed": {"scram-sha-256": scram},
    }
    return {
        f"listener.name.{listener}.{mechanism}.sasl.jaas.config": _escaped(login)
        for listener, logins in by_listener.items()
        for mechanism, login in logins.items()
    }


def _escaped(text: str) -> str:
    """As a value of a properties file."""
    return text.replace("\\", "\\\\")
