"""The settings about security, by the names of Kafka's Java clients and of librdkafka: what becomes of each."""

from __future__ import annotations

PROTOCOL = "security.protocol"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")

FOLLOWED = (
    PROTOCOL,
    "sasl.jaas.config",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.password",
    "sasl.username",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
OF_NO_EFFECT = (
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
)
"""about Java's own machinery, or a login that we do not keep: taken, so that settings made for Java can be used."""
_NO_JAVA = "it names a class of Java, and there is no Java here"
NO_TOKENS = "tokens are not fetched from here; give one to penstock.wire.sasl.Credentials in Python"
REFUSED = {
    "enable.ssl.certificate.verification": "a certificate that nobody checks protects nothing; name the authority "
    "that signed it by ssl.ca.location",
    "sasl.client.callback.handler.class": _NO_JAVA,
    "sasl.login.callback.handler.class": _NO_JAVA,
    "sasl.login.class": _NO_JAVA,
    "sasl.oauthbearer.config": NO_TOKENS,
    "sasl.oauthbearer.method": NO_TOKENS,
    "sasl.oauthbearer.token.endpoint.url": NO_TOKENS,
    "ssl.cipher.suites": "suites are chosen by this machine's OpenSSL; ssl.enabled.protocols narrows the versions",
    "ssl.engine.factory.class": _NO_JAVA,
}
NAMES = frozenset({*FOLLOWED, *OF_NO_EFFECT, *REFUSED})
PREFIXES = ("ssl.", "sasl.", "security.", "enable.ssl.")
"""whatever begins so is about security, known or not."""

LOGIN_MODULES: dict[str, tuple[str, ...]] = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
_PEM_BY_KEYTOOL = (
    "`keytool -importkeystore -srckeystore STORE -destkeystore store.p12 -deststoretype PKCS12` and "
    "`openssl pkcs12 -in store.p12 -nodes -out store.pem` make a PEM file of it"
)
_PEM_BY_OPENSSL = "`openssl pkcs12 -in STORE -nodes -out store.pem` makes a PEM file of it"
CONVERSIONS = {"JKS": _PEM_BY_KEYTOOL, "PKCS12": _PEM_BY_OPENSSL}
"""by the type of a store that cannot be read: how to make one that can."""
