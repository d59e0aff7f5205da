"""Values: what is taken, what is refused, and in which words."""

from __future__ import annotations

import pytest

from penstock.base.configs.broker import BROKER_CONFIGS
from penstock.base.configs.define import ConfigDef
from penstock.base.configs.group import GROUP_CONFIGS
from penstock.base.configs.metrics import CLIENT_METRICS_CONFIGS
from penstock.base.configs.topic import TOPIC_CONFIGS, check_topic_configs
from penstock.base.configs.values import Value, normal_text, parse, text_of
from penstock.base.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("row", "text", "value"),
    [
        (TOPIC_CONFIGS["retention.ms"], " -1 ", -1),
        (TOPIC_CONFIGS["retention.ms"], "+7", 7),
        (TOPIC_CONFIGS["preallocate"], "TRUE", True),
        (TOPIC_CONFIGS["min.cleanable.dirty.ratio"], "1e-1", 0.1),
        (TOPIC_CONFIGS["cleanup.policy"], " compact , delete ", ["compact", "delete"]),
        (TOPIC_CONFIGS["cleanup.policy"], "", []),
        (TOPIC_CONFIGS["compression.gzip.level"], "-1", -1),
        (TOPIC_CONFIGS["leader.replication.throttled.replicas"], "0:1,10:2", ["0:1", "10:2"]),
        (TOPIC_CONFIGS["leader.replication.throttled.replicas"], "*", ["*"]),
        (GROUP_CONFIGS["share.auto.offset.reset"], "by_duration:P1DT2H3M4.5S", "by_duration:P1DT2H3M4.5S"),
        (CLIENT_METRICS_CONFIGS["match"], "client_id=a.*", ["client_id=a.*"]),
        (BROKER_CONFIGS["group.consumer.migration.policy"], "Upgrade", "Upgrade"),
        (BROKER_CONFIGS["ssl.key.password"], " keeps its blanks ", " keeps its blanks "),
        (BROKER_CONFIGS["log.retention.ms"], None, None),
    ],
)
def test_a_legal_text_becomes_its_value(row: ConfigDef, text: str | None, value: Value):
    assert parse(row, text) == value


@pytest.mark.parametrize(
    ("row", "text", "fault"),
    [
        (TOPIC_CONFIGS["retention.ms"], "-5", "retention.ms: -5 is below -1, the smallest value allowed"),
        (
            TOPIC_CONFIGS["compression.lz4.level"],
            "18",
            "compression.lz4.level: 18 is above 17, the largest value allowed",
        ),
        (TOPIC_CONFIGS["retention.ms"], "1_000", "retention.ms: '1_000' is not a 64-bit whole number"),
        (TOPIC_CONFIGS["retention.ms"], "9223372036854775808", "is not a 64-bit whole number"),
        (TOPIC_CONFIGS["segment.bytes"], "2147483648", "is not a 32-bit whole number"),
        (TOPIC_CONFIGS["segment.bytes"], "", "segment.bytes: '' is not a 32-bit whole number"),
        (TOPIC_CONFIGS["preallocate"], "yes", "preallocate: 'yes' is neither true nor false"),
        (TOPIC_CONFIGS["min.cleanable.dirty.ratio"], "nan", "min.cleanable.dirty.ratio: 'nan' is not a number"),
        (TOPIC_CONFIGS["cleanup.policy"], "compact,drop", "cleanup.policy: 'drop' is none of compact, delete"),
        (TOPIC_CONFIGS["cleanup.policy"], "delete,delete", "names a value twice"),
        (TOPIC_CONFIGS["cleanup.policy"], "delete,", "holds an empty value"),
        (TOPIC_CONFIGS["compression.gzip.level"], "0", "0 is neither -1 nor between 1 and 9"),
        (TOPIC_CONFIGS["follower.replication.throttled.replicas"], "1-2", "is neither '*' nor a list"),
        (GROUP_CONFIGS["share.auto.offset.reset"], "by_duration:P", "is none of latest, earliest"),
        (CLIENT_METRICS_CONFIGS["match"], "colour=red", "'colour=red' is not a pattern"),
        (CLIENT_METRICS_CONFIGS["match"], "client_id=(", "is not a regular expression"),
        (BROKER_CONFIGS["listeners"], "", "listeners: the list is empty"),
        (BROKER_CONFIGS["node.id"], None, "node.id: a value is required"),
    ],
)
def test_an_illegal_text_is_refused_by_name_and_reason(row: ConfigDef, text: str | None, fault: str):
    with pytest.raises(ValueError) as refusal:
        parse(row, text)
    assert fault in str(refusal.value)
    assert str(refusal.value).startswith(row.name)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0001, "1.0E-4"),
        (12345678.0, "1.2345678E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (True, "true"),
        (["a", "b"], "a,b"),
        (None, None),
    ],
)
def test_values_print_as_java_prints_them(value: Value, text: str | None):
    assert text_of(value) == text


def test_a_text_is_printed_back_in_its_normal_form():
    assert normal_text(TOPIC_CONFIGS["retention.ms"], " 007 ") == "7"


def test_an_unknown_topic_configuration_is_refused():
    with pytest.raises(KafkaError, match=r"no\.such: there is no topic configuration of this name") as refusal:
        check_topic_configs({"no.such": "1"})
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


def test_compaction_lags_that_contradict_each_other_are_refused():
    with pytest.raises(KafkaError, match=r"min\.compaction\.lag\.ms: 10 is above max\.compaction\.lag\.ms, which is 5"):
        check_topic_configs({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_tiered_storage_cannot_be_switched_on_where_there_is_none():
    with pytest.raises(KafkaError, match=r"remote\.storage\.enable"):
        check_topic_configs({"remote.storage.enable": "true"})
