"""Configurations changed and shown, with the codes and sources that Kafka gives."""

from __future__ import annotations

import pytest

from penstock.base.configs.define import ConfigSource, ConfigType, ResourceType
from penstock.base.errors import ErrorCode
from penstock.core.controller.changes import APPEND, DELETE, SET, SUBTRACT
from penstock.core.controller.configs import decide_alter_configs, decide_incremental_alter_configs
from penstock.core.controller.describe import describe_configs, list_config_resources
from penstock.core.metadata.effective import Node, group_config, topic_config, topic_defaults
from penstock.core.metadata.image import Image
from penstock.protocol.generated import alter_configs_request as legacy
from penstock.protocol.generated.clear_elr_record import ClearElrRecord
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.generated.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.generated.list_config_resources_request import ListConfigResourcesRequest
from penstock.protocol.generated.topic_record import TopicRecord

TOPIC, BROKER, GROUP, METRICS = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
)


def setting(kind: int, owner: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=owner, name=name, value=value)


@pytest.fixture
def image(cluster, replay) -> Image:
    return replay(
        cluster(1),
        TopicRecord(name="orders", topic_id=b"o" * 16),
        setting(TOPIC, "orders", "retention.ms", "1000"),
    )


def ask(kind: int, owner: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    configs = [
        AlterableConfig(name=name, config_operation=operation, value=value) for name, operation, value in changes
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=owner, configs=configs)


def alter(image: Image, node: Node, *resources: AlterConfigsResource, validate_only: bool = False):
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    return decide_incremental_alter_configs(image, node, request)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        (("cleanup.policy", SET, "compact"), "compact"),
        (("cleanup.policy", APPEND, "compact"), "delete,compact"),
        (("cleanup.policy", APPEND, "delete"), "delete"),
        (("cleanup.policy", SUBTRACT, "delete"), ""),
        (("retention.ms", DELETE, None), None),
    ],
)
def test_an_operation_leads_to_the_value_that_is_written(image, node, change, value):
    result = alter(image, node, ask(TOPIC, "orders", change))
    assert result.response.responses[0].error_code == 0
    assert [(record.name, record.value) for record in result.records] == [(change[0], value)]


def test_a_value_that_does_not_change_is_not_written(image, node):
    result = alter(image, node, ask(TOPIC, "orders", ("retention.ms", SET, "1000")))
    assert (result.response.responses[0].error_code, result.records) == (0, [])


def test_validate_only_writes_nothing(image, node):
    result = alter(image, node, ask(TOPIC, "orders", ("retention.ms", SET, "5")), validate_only=True)
    assert (result.response.responses[0].error_code, result.records) == (0, [])


@pytest.mark.parametrize(
    ("resource", "code", "says"),
    [
        (ask(TOPIC, "orders", ("retention.ms", SET, "-5")), ErrorCode.INVALID_CONFIG, "-5 is below -1"),
        (ask(TOPIC, "orders", ("nope", SET, "1")), ErrorCode.INVALID_CONFIG, "nope"),
        (ask(TOPIC, "orders", ("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG, "not LIST"),
        (ask(TOPIC, "orders", ("nope", APPEND, "1")), ErrorCode.INVALID_CONFIG, "not LIST"),
        (ask(TOPIC, "orders", ("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST, "operation 9"),
        (ask(TOPIC, "orders", ("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST, "Null value"),
        (ask(TOPIC, "orders", ("a", SET, "1"), ("a", SET, "2")), ErrorCode.INVALID_REQUEST, "duplicate"),
        (ask(TOPIC, "orders", ("x", SET, "1" * 32_768)), ErrorCode.INVALID_CONFIG, "32768 characters"),
        (ask(TOPIC, "missing", ("retention.ms", SET, "5")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "missing"),
        (ask(TOPIC, "mis sing", ("retention.ms", SET, "5")), ErrorCode.INVALID_TOPIC_EXCEPTION, "mis sing"),
        (ask(TOPIC, "", ("retention.ms", SET, "5")), ErrorCode.INVALID_REQUEST, "Default topic"),
        (ask(BROKER, "1", ("num.partitions", SET, "5")), ErrorCode.INVALID_REQUEST, "dynamically: num.partitions"),
        (ask(BROKER, "1", ("num.io.threads", SET, "0")), ErrorCode.INVALID_REQUEST, "0 is below 1"),
        (ask(BROKER, "1", ("num.io.threads", SET, "abc")), ErrorCode.INVALID_REQUEST, "'abc'"),
        (ask(BROKER, "", ("listeners", SET, "PLAINTEXT://:1")), ErrorCode.INVALID_REQUEST, "broker id"),
        (ask(BROKER, "1", ("ssl.keystore.location", SET, "/x")), ErrorCode.INVALID_REQUEST, "listener's prefix"),
        (ask(BROKER, "2", ("max.connections", SET, "5")), ErrorCode.INVALID_REQUEST, "expected 1"),
        (ask(BROKER, "one", ("max.connections", SET, "5")), ErrorCode.INVALID_REQUEST, "one"),
        (ask(GROUP, "g", ("consumer.session.timeout.ms", SET, "1")), ErrorCode.INVALID_CONFIG, "below 45000"),
        (ask(GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "60000")), ErrorCode.INVALID_CONFIG, "above 15000"),
        (ask(GROUP, "g", ("nope", SET, "1")), ErrorCode.INVALID_CONFIG, "nope"),
        (ask(GROUP, "", ("consumer.session.timeout.ms", SET, "1")), ErrorCode.INVALID_REQUEST, "Default group"),
        (ask(METRICS, "m", ("interval.ms", SET, "1")), ErrorCode.INVALID_REQUEST, "1 is below 100"),
        (ask(METRICS, "m", ("nope", SET, "1")), ErrorCode.INVALID_REQUEST, "nope"),
        (ask(METRICS, "m", ("match", SET, "a=b")), ErrorCode.INVALID_CONFIG, "a=b"),
        (ask(METRICS, "", ("interval.ms", SET, "1000")), ErrorCode.INVALID_REQUEST, "empty"),
        (ask(3, "x", ("a", SET, "1")), ErrorCode.INVALID_REQUEST, "resource type 3"),
    ],
)
def test_a_change_that_kafka_refuses_is_refused_with_its_code(image, node, resource, code, says):
    result = alter(image, node, resource)
    answer = result.response.responses[0]
    assert (ErrorCode(answer.error_code), result.records) == (code, [])
    assert says in (answer.error_message or "")


NO_NODE_IDS = ["9" * 32_767, "9" * 5_000, "-" + "9" * 5_000, "2147483648", "٣", "--1", "-"]


@pytest.mark.parametrize("name", NO_NODE_IDS)
def test_a_broker_whose_name_is_no_node_id_is_refused_alone(image, node, name):
    result = alter(image, node, ask(BROKER, name, ("max.connections", SET, "5")), ask(BROKER, "1"))
    refused, other = result.response.responses
    assert (refused.error_code, other.error_code) == (ErrorCode.INVALID_REQUEST, 0)
    shown = describe_configs(image, node, DescribeConfigsRequest(resources=[described(name), described("1")]))
    refused, other = shown.results
    assert (refused.error_code, other.error_code) == (ErrorCode.INVALID_REQUEST, 0)
    assert result.response.encode(0) and shown.encode(1)


def described(broker: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=BROKER, resource_name=broker, configuration_keys=None)


def test_one_bad_resource_leaves_the_others_alone(image, node):
    good, bad = ask(GROUP, "g", ("share.auto.offset.reset", SET, "earliest")), ask(TOPIC, "orders", ("nope", SET, "1"))
    result = alter(image, node, bad, good)
    assert [answer.error_code for answer in result.response.responses] == [ErrorCode.INVALID_CONFIG, 0]
    assert [record.name for record in result.records] == ["share.auto.offset.reset"]


def test_a_resource_that_stands_twice_is_refused_twice(image, node):
    twice = ask(TOPIC, "orders", ("retention.ms", SET, "5"))
    result = alter(image, node, twice, twice)
    assert [answer.error_code for answer in result.response.responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_broker_s_value_is_written_even_where_it_stays(image, node, replay):
    image = replay(image, setting(BROKER, "", "max.connections", "5"))
    assert len(alter(image, node, ask(BROKER, "", ("max.connections", SET, "5"))).records) == 1


def test_an_unknown_broker_configuration_is_kept_for_plug_ins(image, node):
    assert alter(image, node, ask(BROKER, "1", ("my.own", SET, "5"))).response.responses[0].error_code == 0


def test_a_listener_s_own_value_needs_a_broker_id(image, node):
    name = "listener.name.internal.ssl.keystore.location"
    one = alter(image, node, ask(BROKER, "1", (name, SET, "/x")))
    all_ = alter(image, node, ask(BROKER, "", (name, SET, "/x")))
    assert (one.response.responses[0].error_code, all_.response.responses[0].error_code) == (0, 42)


def test_a_new_min_isr_clears_who_was_eligible_to_lead(cluster, node, replay):
    image = replay(
        cluster(1, features={"eligible.leader.replicas.version": 1}), TopicRecord(name="orders", topic_id=b"o" * 16)
    )
    change = ("min.insync.replicas", SET, "2")
    assert alter(image, node, ask(TOPIC, "orders", change)).records[-1] == ClearElrRecord(topic_name="orders")
    assert alter(image, node, ask(BROKER, "", change)).records[-1] == ClearElrRecord(topic_name="")
    assert alter(image, node, ask(BROKER, "1", change)).response.responses[0].error_code == ErrorCode.INVALID_CONFIG


def test_the_old_api_replaces_everything(image, node):
    configs = [legacy.AlterableConfig(name="cleanup.policy", value="compact")]
    resource = legacy.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=configs)
    result = decide_alter_configs(image, node, legacy.AlterConfigsRequest(resources=[resource]))
    changes = [(record.name, record.value) for record in result.records]
    assert changes == [("cleanup.policy", "compact"), ("retention.ms", None)]


def describe(image: Image, node: Node, kind: int, owner: str, keys: list[str] | None = None, **options: bool):
    resource = DescribeConfigsResource(resource_type=kind, resource_name=owner, configuration_keys=keys)
    return describe_configs(image, node, DescribeConfigsRequest(resources=[resource], **options)).results[0]


def entry(image: Image, node: Node, kind: int, owner: str, name: str):
    return describe(image, node, kind, owner, [name], include_synonyms=True, include_documentation=True).configs[0]


def test_a_topic_shows_all_its_configurations_with_their_defaults(image, node):
    shown = {one.name: one for one in describe(image, node, TOPIC, "orders").configs}
    assert len(shown) == 33
    assert (shown["retention.ms"].value, shown["retention.ms"].config_source) == ("1000", ConfigSource.TOPIC)
    assert (shown["cleanup.policy"].value, shown["cleanup.policy"].config_type) == ("delete", ConfigType.LIST)
    assert shown["retention.ms"].synonyms == []
    assert shown["retention.ms"].documentation is None


def test_synonyms_tell_every_place_that_sets_a_value(image, replay):
    image = replay(image, setting(BROKER, "", "log.retention.ms", "5000"), setting(BROKER, "1", "max.connections", "9"))
    node = Node(1, {"log.retention.hours": "1"})
    topic = entry(image, node, TOPIC, "orders", "retention.ms")
    assert [(s.name, s.value, s.source) for s in topic.synonyms] == [
        ("retention.ms", "1000", ConfigSource.TOPIC),
        ("log.retention.ms", "5000", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "1", ConfigSource.STATIC_BROKER),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]
    assert topic.documentation
    broker = entry(image, node, BROKER, "1", "max.connections")
    assert (broker.value, broker.config_source, broker.read_only) == ("9", ConfigSource.DYNAMIC_BROKER, False)
    assert entry(image, node, BROKER, "1", "num.partitions").read_only


def test_values_are_shown_in_their_normal_form(image, node, replay):
    image = replay(image, setting(TOPIC, "orders", "retention.ms", "0007"))
    assert entry(image, node, TOPIC, "orders", "retention.ms").value == "7"


def test_secrets_and_unknown_names_are_not_shown(image):
    node = Node(1, {"ssl.key.password": "hush", "super.secret": "hush"})
    for name in ("ssl.key.password", "super.secret"):
        shown = entry(image, node, BROKER, "1", name)
        assert (shown.value, shown.is_sensitive, [s.value for s in shown.synonyms]) == (None, True, [None])


def test_the_default_of_all_brokers_shows_only_what_was_set(image, node, replay):
    image = replay(image, setting(BROKER, "", "log.retention.ms", "5000"))
    shown = describe(image, node, BROKER, "").configs
    assert [(one.name, one.config_source) for one in shown] == [
        ("log.retention.ms", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    ]


def test_groups_and_metrics_subscriptions_are_shown_with_defaults(image, node, replay):
    image = replay(image, setting(GROUP, "g", "share.auto.offset.reset", "earliest"))
    assert len(describe(image, node, GROUP, "g").configs) == 21
    assert entry(image, node, GROUP, "g", "share.auto.offset.reset").config_source == ConfigSource.GROUP
    metrics = {one.name: (one.value, one.config_source) for one in describe(image, node, METRICS, "any").configs}
    assert metrics == {"interval.ms": ("300000", 5), "match": ("", 5), "metrics": ("", 5)}


@pytest.mark.parametrize(
    ("kind", "owner", "code"),
    [
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "mis sing", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_is_refused(image, node, kind, owner, code):
    result = describe(image, node, kind, owner)
    assert (result.error_code, result.configs) == (code, [])


def test_effective_values_follow_topic_broker_and_default(image, replay):
    image = replay(image, setting(BROKER, "", "log.segment.bytes", "2097152"))
    node = Node(1, {"log.roll.hours": "2", "log.flush.scheduler.interval.ms": "77"})
    effective = topic_config(image, node, "orders")
    assert (effective["retention.ms"], effective["segment.bytes"]) == ("1000", "2097152")
    assert (effective["segment.ms"], effective["flush.ms"]) == ("7200000", "77")
    assert topic_config(image, node, "orders", topic_defaults(image, node)) == effective
    assert group_config(image, node, "g")["consumer.session.timeout.ms"] == "45000"


def test_a_negative_retention_in_hours_is_for_ever(image):
    assert topic_defaults(image, Node(1, {"log.retention.hours": "-1"}))["retention.ms"] == "-1"


def test_resources_are_listed_by_type(image, replay):
    image = replay(image, setting(METRICS, "m", "interval.ms", "1000"), setting(GROUP, "g", "x", "y"))

    def listed(version: int, *kinds: int) -> list[tuple[int, str]]:
        response = list_config_resources(image, ListConfigResourcesRequest(resource_types=list(kinds)), version)
        return [(one.resource_type, one.resource_name) for one in response.config_resources]

    assert listed(0) == [(METRICS, "m")]
    assert listed(1, TOPIC, GROUP) == [(TOPIC, "orders"), (GROUP, "g")]
    assert (BROKER, "1") in listed(1)
    refused = list_config_resources(image, ListConfigResourcesRequest(resource_types=[99]), 1)
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
