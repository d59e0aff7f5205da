"""All configurations of a broker, by name, gathered from their themes."""

from __future__ import annotations

from penstock.base.configs.broker_groups import GROUPS_CONFIGS
from penstock.base.configs.broker_logs import LOGS_CONFIGS
from penstock.base.configs.broker_quorum import QUORUM_CONFIGS
from penstock.base.configs.broker_quotas import QUOTAS_CONFIGS
from penstock.base.configs.broker_replication import REPLICATION_CONFIGS
from penstock.base.configs.broker_security import SECURITY_CONFIGS
from penstock.base.configs.broker_server import SERVER_CONFIGS
from penstock.base.configs.broker_shares import SHARES_CONFIGS
from penstock.base.configs.broker_tiering import TIERING_CONFIGS
from penstock.base.configs.broker_transactions import TRANSACTIONS_CONFIGS
from penstock.base.configs.define import ConfigDef

_THEMES = (
    SERVER_CONFIGS,
    LOGS_CONFIGS,
    QUORUM_CONFIGS,
    REPLICATION_CONFIGS,
    GROUPS_CONFIGS,
    SHARES_CONFIGS,
    TRANSACTIONS_CONFIGS,
    SECURITY_CONFIGS,
    QUOTAS_CONFIGS,
    TIERING_CONFIGS,
)
BROKER_CONFIGS: dict[str, ConfigDef] = {name: row for theme in _THEMES for name, row in theme.items()}
assert len(BROKER_CONFIGS) == sum(map(len, _THEMES)), "a broker configuration stands in two themes"

DYNAMIC_ONLY = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
"""Set through the API alone; not listed among a broker's configurations unless set."""

_FAMILIES = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FAMILY_OF = {name: family for family in _FAMILIES for name in family if name != "log.flush.scheduler.interval.ms"}


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The names that set the same thing, strongest first: `log.retention.hours` is also asked as `log.retention.ms`.

    A name with a listener's prefix (`listener.name.<listener>.ssl.keystore.location`) falls back to the plain one.
    """
    if name in _FAMILY_OF:
        return _FAMILY_OF[name]
    plain = without_listener(name)
    return (name,) if plain == name else (name, plain)


def without_listener(name: str) -> str:
    """`listener.name.internal.ssl.key.password` and `listener.name.internal.scram-sha-256.sasl.jaas.config` without
    their prefixes; any other name as it is."""
    if not name.startswith("listener.name."):
        return name
    parts = name.split(".")
    for at in (3, 4):
        plain = ".".join(parts[at:])
        if plain in BROKER_CONFIGS:
            return plain
    return name
