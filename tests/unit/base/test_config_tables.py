"""The tables hold what Kafka 4.3 has, and every row is sound."""

from __future__ import annotations

import pytest

from penstock.base.configs.broker import BROKER_CONFIGS, DYNAMIC_ONLY, broker_synonyms
from penstock.base.configs.define import IDLE_DOCUMENTATION, ConfigDef, Dynamic
from penstock.base.configs.group import GROUP_CONFIGS
from penstock.base.configs.metrics import CLIENT_METRICS_CONFIGS
from penstock.base.configs.topic import TOPIC_CONFIGS
from penstock.base.configs.values import normal_text

TABLES = {
    "broker": BROKER_CONFIGS,
    "topic": TOPIC_CONFIGS,
    "group": GROUP_CONFIGS,
    "client metrics": CLIENT_METRICS_CONFIGS,
}
ROWS = [pytest.param(row, id=f"{kind} {row.name}") for kind, table in TABLES.items() for row in table.values()]


def test_the_tables_have_as_many_names_as_kafka():
    assert len(BROKER_CONFIGS) == 360 + len(DYNAMIC_ONLY)
    assert sum(not row.internal for row in TOPIC_CONFIGS.values()) == 33
    assert sum(not name.startswith("penstock.") for name in GROUP_CONFIGS) == 17
    assert list(CLIENT_METRICS_CONFIGS) == ["interval.ms", "match", "metrics"]


@pytest.mark.parametrize("row", ROWS)
def test_a_default_is_legal_and_prints_as_itself(row: ConfigDef):
    if row.default is not None:
        assert normal_text(row, row.default) == row.default


@pytest.mark.parametrize("row", ROWS)
def test_a_configuration_says_what_it_does(row: ConfigDef):
    assert row.documentation.endswith(".")
    assert bool(row.doc) or row.documentation == IDLE_DOCUMENTATION


@pytest.mark.parametrize("table", [TOPIC_CONFIGS, GROUP_CONFIGS])
def test_a_synonym_is_a_broker_configuration_with_the_same_default(table: dict[str, ConfigDef]):
    for row in table.values():
        given = [s for s in row.synonyms if BROKER_CONFIGS[s.name].default is not None]
        if not given:
            continue
        default = BROKER_CONFIGS[given[0].name].default
        assert default is not None
        assert row.default == (default if given[0].factor == 1 else str(int(default) * given[0].factor))


def test_dynamic_names_are_those_that_a_running_broker_takes():
    assert BROKER_CONFIGS["listeners"].dynamic is Dynamic.PER_BROKER
    assert BROKER_CONFIGS["log.retention.ms"].dynamic is Dynamic.CLUSTER_WIDE
    assert BROKER_CONFIGS["log.retention.hours"].dynamic is Dynamic.READ_ONLY


@pytest.mark.parametrize(
    ("name", "synonyms"),
    [
        ("num.partitions", ("num.partitions",)),
        ("log.retention.hours", ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
        (
            "listener.name.internal.ssl.keystore.location",
            ("listener.name.internal.ssl.keystore.location", "ssl.keystore.location"),
        ),
        (
            "listener.name.a.scram-sha-256.sasl.jaas.config",
            ("listener.name.a.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
        ),
    ],
)
def test_a_broker_configuration_is_also_asked_under_its_synonyms(name: str, synonyms: tuple[str, ...]):
    assert broker_synonyms(name) == synonyms
