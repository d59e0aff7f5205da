"""TLS, SASL, delegation tokens and principals."""

from __future__ import annotations

from penstock.base.configs.define import ConfigDef, ConfigType, Dynamic, idle, table

BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD
PER_BROKER = Dynamic.PER_BROKER

SECURITY_CONFIGS = table(
    ConfigDef(
        "authorizer.class.name",
        STRING,
        "",
        doc="Who decides what clients may do. None is built so far, and a broker that is given one does not start.",
    ),
    idle("connection.failed.authentication.delay.ms", INT, "100", low=0),
    idle("connections.max.reauth.ms", LONG, "0"),
    idle("delegation.token.expiry.check.interval.ms", LONG, "3600000", low=1),
    idle("delegation.token.expiry.time.ms", LONG, "86400000", low=1),
    idle("delegation.token.max.lifetime.ms", LONG, "604800000", low=1),
    idle("delegation.token.secret.key", PASSWORD, None),
    idle(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        dynamic=PER_BROKER,
    ),
    idle("sasl.client.callback.handler.class", CLASS, None),
    idle("sasl.enabled.mechanisms", LIST, "GSSAPI", unique=True, dynamic=PER_BROKER),
    idle("sasl.jaas.config", PASSWORD, None, dynamic=PER_BROKER),
    idle("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", dynamic=PER_BROKER),
    idle("sasl.kerberos.min.time.before.relogin", LONG, "60000", dynamic=PER_BROKER),
    idle("sasl.kerberos.principal.to.local.rules", LIST, "DEFAULT", unique=True, dynamic=PER_BROKER),
    idle("sasl.kerberos.service.name", STRING, None, dynamic=PER_BROKER),
    idle("sasl.kerberos.ticket.renew.jitter", DOUBLE, "0.05", dynamic=PER_BROKER),
    idle("sasl.kerberos.ticket.renew.window.factor", DOUBLE, "0.8", dynamic=PER_BROKER),
    idle("sasl.login.callback.handler.class", CLASS, None),
    idle("sasl.login.class", CLASS, None),
    idle("sasl.login.connect.timeout.ms", INT, None),
    idle("sasl.login.read.timeout.ms", INT, None),
    idle("sasl.login.refresh.buffer.seconds", SHORT, "300", dynamic=PER_BROKER),
    idle("sasl.login.refresh.min.period.seconds", SHORT, "60", dynamic=PER_BROKER),
    idle("sasl.login.refresh.window.factor", DOUBLE, "0.8", dynamic=PER_BROKER),
    idle("sasl.login.refresh.window.jitter", DOUBLE, "0.05", dynamic=PER_BROKER),
    idle("sasl.login.retry.backoff.max.ms", LONG, "10000"),
    idle("sasl.login.retry.backoff.ms", LONG, "100"),
    idle("sasl.mechanism.controller.protocol", STRING, "GSSAPI"),
    idle("sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", dynamic=PER_BROKER),
    idle(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        one_of=(
            "ES256",
            "RS256",
        ),
        fold_case=True,
    ),
    idle("sasl.oauthbearer.assertion.claim.aud", STRING, None),
    idle("sasl.oauthbearer.assertion.claim.exp.seconds", INT, "300", low=0, high=86400),
    idle("sasl.oauthbearer.assertion.claim.iss", STRING, None),
    idle("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, "false"),
    idle("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, "60", low=0, high=3600),
    idle("sasl.oauthbearer.assertion.claim.sub", STRING, None),
    idle("sasl.oauthbearer.assertion.file", STRING, None),
    idle("sasl.oauthbearer.assertion.private.key.file", STRING, None),
    idle("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None),
    idle("sasl.oauthbearer.assertion.template.file", STRING, None),
    idle("sasl.oauthbearer.client.credentials.client.id", STRING, None),
    idle("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None),
    idle("sasl.oauthbearer.clock.skew.seconds", INT, "30"),
    idle("sasl.oauthbearer.expected.audience", LIST, "", unique=True),
    idle("sasl.oauthbearer.expected.issuer", STRING, None),
    idle("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, "3600000"),
    idle("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, "10000"),
    idle("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, "100"),
    idle("sasl.oauthbearer.jwks.endpoint.url", STRING, None),
    idle(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    ),
    idle(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    ),
    idle("sasl.oauthbearer.scope", STRING, None),
    idle("sasl.oauthbearer.scope.claim.name", STRING, "scope"),
    idle("sasl.oauthbearer.sub.claim.name", STRING, "sub"),
    idle("sasl.oauthbearer.token.endpoint.url", STRING, None),
    idle("sasl.server.callback.handler.class", CLASS, None),
    idle("sasl.server.max.receive.size", INT, "524288"),
    ConfigDef(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        one_of=(
            "PLAINTEXT",
            "SSL",
            "SASL_PLAINTEXT",
            "SASL_SSL",
        ),
        doc="The listener of this name is the one between brokers, unless inter.broker.listener.name names another.",
    ),
    idle("security.providers", STRING, None),
    idle("ssl.allow.dn.changes", BOOLEAN, "false"),
    idle("ssl.allow.san.changes", BOOLEAN, "false"),
    idle("ssl.cipher.suites", LIST, "", unique=True, dynamic=PER_BROKER),
    idle(
        "ssl.client.auth",
        STRING,
        "none",
        one_of=(
            "required",
            "requested",
            "none",
        ),
        dynamic=PER_BROKER,
    ),
    idle("ssl.enabled.protocols", LIST, "TLSv1.2,TLSv1.3", unique=True, dynamic=PER_BROKER),
    idle("ssl.endpoint.identification.algorithm", STRING, "https", dynamic=PER_BROKER),
    idle("ssl.engine.factory.class", CLASS, None, dynamic=PER_BROKER),
    idle("ssl.key.password", PASSWORD, None, dynamic=PER_BROKER),
    idle("ssl.keymanager.algorithm", STRING, "SunX509", dynamic=PER_BROKER),
    idle("ssl.keystore.certificate.chain", PASSWORD, None, dynamic=PER_BROKER),
    idle("ssl.keystore.key", PASSWORD, None, dynamic=PER_BROKER),
    idle("ssl.keystore.location", STRING, None, dynamic=PER_BROKER),
    idle("ssl.keystore.password", PASSWORD, None, dynamic=PER_BROKER),
    idle("ssl.keystore.type", STRING, "JKS", dynamic=PER_BROKER),
    idle("ssl.principal.mapping.rules", STRING, "DEFAULT"),
    idle("ssl.protocol", STRING, "TLSv1.3", dynamic=PER_BROKER),
    idle("ssl.provider", STRING, None, dynamic=PER_BROKER),
    idle("ssl.secure.random.implementation", STRING, None, dynamic=PER_BROKER),
    idle("ssl.trustmanager.algorithm", STRING, "PKIX", dynamic=PER_BROKER),
    idle("ssl.truststore.certificates", PASSWORD, None, dynamic=PER_BROKER),
    idle("ssl.truststore.location", STRING, None, dynamic=PER_BROKER),
    idle("ssl.truststore.password", PASSWORD, None, dynamic=PER_BROKER),
    idle("ssl.truststore.type", STRING, "JKS", dynamic=PER_BROKER),
)
