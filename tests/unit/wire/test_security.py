"""Security by Kafka's and librdkafka's names: what is followed, what is refused and how that is said."""

from __future__ import annotations

import pickle

import pytest

from penstock.base.errors import ErrorCode
from penstock.wire.errors import InvalidSecurity
from penstock.wire.sasl import Credentials
from penstock.wire.security import PLAINTEXT, Pem, Security, Tls, parse, without

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "hush-hush"
ALICE = {"sasl.username": "alice", "sasl.password": SECRET}


def sasl(**settings: str) -> dict[str, str]:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
    return given | {f"sasl.{name.replace('_', '.')}": value for name, value in settings.items()}


def tls(**settings: str) -> dict[str, str]:
    return {"security.protocol": "SSL"} | {f"ssl.{name.replace('_', '.')}": value for name, value in settings.items()}


def test_nothing_said_is_plaintext_and_other_settings_are_left_alone() -> None:
    assert parse({}) == PLAINTEXT
    assert parse({"security.protocol": "plaintext", "sasl.mechanism": "GSSAPI", "ssl.cipher.suites": "x"}) == PLAINTEXT
    assert parse({"fetch.min.bytes": "1"}) == PLAINTEXT


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("scram-sha-512", SCRAM), ("PLAIN", f"kafkashaded.{PLAIN}")],
)
def test_a_login_as_java_users_write_it(mechanism: str, module: str) -> None:
    jaas = f'{module} required username="alice" password="{SECRET}";'
    found = parse({"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas})
    assert found == Security(Tls(), Credentials(mechanism.upper(), "alice", SECRET))


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_a_login_as_users_of_librdkafka_write_it(name: str) -> None:
    found = parse({"security.protocol": "sasl_plaintext", name: "PLAIN", **ALICE})
    assert found == Security(None, Credentials("PLAIN", "alice", SECRET))


def test_stores_as_java_users_write_them() -> None:
    settings = tls(
        truststore_type="PEM",
        truststore_location="/ca.pem",
        keystore_type="PEM",
        keystore_location="/me.pem",
        key_password=SECRET,
        endpoint_identification_algorithm="",
        enabled_protocols="TLSv1.3",
    )
    assert parse(settings).tls == Tls(
        trusted=Pem("ssl.truststore.location", "/ca.pem"),
        chain=Pem("ssl.keystore.location", "/me.pem"),
        key_password=SECRET,
        check_host_name=False,
        versions=("TLSv1.3",),
    )


def test_stores_as_texts() -> None:
    settings = tls(truststore_certificates="CA", keystore_certificate_chain="ME", keystore_key=SECRET)
    assert parse(settings).tls == Tls(
        trusted=Pem("ssl.truststore.certificates", text="CA"),
        chain=Pem("ssl.keystore.certificate.chain", text="ME"),
        key=Pem("ssl.keystore.key", text=SECRET),
    )


def test_files_as_users_of_librdkafka_name_them() -> None:
    found = parse(tls(ca_location="/ca.pem", certificate_location="/me.pem", key_location="/me.key")).tls
    assert found == Tls(
        trusted=Pem("ssl.ca.location", "/ca.pem"),
        chain=Pem("ssl.certificate.location", "/me.pem"),
        key=Pem("ssl.key.location", "/me.key"),
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is needed: one of PLAIN"),
        (sasl(mechanism="GSSAPI"), "GSSAPI (Kerberos) is not spoken"),
        (sasl(mechanism="AWS_MSK_IAM"), "not 'AWS_MSK_IAM'"),
        (sasl(mechanism="OAUTHBEARER"), "settings have no place for a token"),
        (sasl(), "sasl.username is needed for SCRAM-SHA-256, or kafka.sasl.jaas.config in its place"),
        (sasl(username="alice"), "sasl.password is needed"),
        (sasl(**{"jaas.config": f"{PLAIN} required username=a password={SECRET};"}), f"SCRAM-SHA-256 needs {SCRAM}"),
        (sasl(**{"jaas.config": f"{SCRAM} required password={SECRET};"}), "sasl.jaas.config has no username"),
        (sasl(**{"jaas.config": f"{SCRAM} required username=a;"}), "sasl.jaas.config has no password"),
        (
            sasl(**{"jaas.config": f"{SCRAM} required username=a password={SECRET} tokenauth=true;"}),
            "the option tokenauth, which cannot be followed",
        ),
        (sasl(**{"jaas.config": f"{SCRAM} required username=a password={SECRET}"}), "cannot be read: it needs a semic"),
        (sasl(username="a", **{"jaas.config": f"{SCRAM} required;"}), "sasl.username and kafka.sasl.jaas.config say"),
        (sasl(pasword=SECRET, username="a"), "sasl.pasword is not known; did you mean kafka.sasl.password?"),
        (sasl(login_class="x"), "sasl.login.class cannot be followed: it names a class of Java"),
        (tls(truststore_type="JKS"), "is JKS, and only PEM is read: `keytool -importkeystore"),
        (tls(keystore_type="pkcs12"), "is PKCS12, and only PEM is read: `openssl pkcs12"),
        (tls(truststore_type="PEM", truststore_password=SECRET), "ssl.truststore.password does not apply"),
        (tls(keystore_type="PEM", keystore_password=SECRET), "a key's is kafka.ssl.key.password"),
        (tls(truststore_location="/a", truststore_certificates="b"), "and kafka.ssl.truststore.certificates say the s"),
        (tls(truststore_location="/a", ca_location="/b"), "ssl.truststore.location and kafka.ssl.ca.location say the"),
        (tls(keystore_key=SECRET), "ssl.keystore.key is the key of a certificate that is not given"),
        (tls(keystore_certificate_chain="x"), "is a certificate whose key is not given"),
        (tls(keystore_location="/a", keystore_key=SECRET), "ssl.keystore.key and kafka.ssl.keystore.location say the"),
        (tls(enabled_protocols="TLSv1.1,TLSv1.2"), "lists some of TLSv1.2, TLSv1.3"),
        (tls(enabled_protocols=","), "lists some of"),
        (tls(endpoint_identification_algorithm="ldaps"), "is https, or empty"),
        (tls(cipher_suites="x"), "ssl.cipher.suites cannot be followed"),
        ({**tls(), "enable.ssl.certificate.verification": "false"}, "a certificate that nobody checks"),
        (tls(truststore_locaton="/a"), "did you mean kafka.ssl.truststore.location?"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name_and_without_secrets(settings: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSecurity) as caught:
        parse(settings, "kafka.")
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert said in str(caught.value)
    assert str(caught.value).startswith("kafka.s") or str(caught.value).startswith("kafka.enable.ssl.")
    assert SECRET not in str(caught.value)


def test_settings_about_javas_own_machinery_are_taken() -> None:
    assert parse(tls(protocol="TLSv1.3", keymanager_algorithm="PKIX")) == Security(Tls())
    assert parse(sasl(kerberos_service_name="kafka", username="a", password="b")).credentials is not None


def test_security_travels_to_tasks_and_shows_no_secret() -> None:
    settings = {
        **sasl(username="alice", password=SECRET),
        **tls(key_password=SECRET, keystore_key=SECRET, keystore_certificate_chain="ME"),
        "security.protocol": "SASL_SSL",
    }
    found = parse(settings)
    assert SECRET not in repr(found) and SECRET not in str(found)
    assert "alice" in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found
    assert len({found, parse(settings)}) == 1


def test_what_is_left_without_security_holds_no_secret() -> None:
    settings = {
        **sasl(**{"jaas.config": SECRET}),
        **tls(keystore_key=SECRET),
        "client.id": "me",
        "fetch.min.bytes": "1",
    }
    assert without(settings) == {"client.id": "me", "fetch.min.bytes": "1"}
