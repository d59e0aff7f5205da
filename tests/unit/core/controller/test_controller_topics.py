"""Topics created, grown and deleted: what is written, and what is refused with which code."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.base.configs.define import ConfigSource
from penstock.base.errors import ErrorCode
from penstock.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.core.controller.internal_topics import internal_topic
from penstock.core.controller.partitions import decide_create_partitions
from penstock.core.controller.placement import place
from penstock.core.controller.topics import decide_create_topics, decide_delete_topics
from penstock.core.metadata.effective import Node, topic_config
from penstock.core.metadata.image import Image
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.generated.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.generated.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.topic_record import TopicRecord
from tests.unit.core.controller import moves


def new(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> CreatableTopic:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=settings)


def assigned(name: str, *replicas: list[int], indexes: list[int] | None = None, **fields: Any) -> CreatableTopic:
    rows = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in zip(indexes or range(len(replicas)), replicas, strict=True)
    ]
    values = {"num_partitions": -1, "replication_factor": -1} | fields
    return CreatableTopic(name=name, assignments=rows, **values)


def request(*topics: CreatableTopic, **fields: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), **fields)


@pytest.fixture
def with_topic(image, node, random, replay):
    def with_topic(*topics: CreatableTopic) -> Image:
        return replay(image, *decide_create_topics(image, node, request(*topics), random).records)

    return with_topic


def test_a_topic_is_its_record_its_configurations_and_its_partitions_in_this_order(image, node, random):
    result = decide_create_topics(image, node, request(new("orders", 2, retention_ms="1000")), random)
    topic, config, first, second = result.records
    assert isinstance(topic, TopicRecord)
    assert config == ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1000")
    assert isinstance(first, PartitionRecord) and isinstance(second, PartitionRecord)
    assert [first.partition_id, second.partition_id] == [0, 1]
    assert (first.leader, first.isr, first.leader_epoch, first.directories) == (1, [1], 0, [b"\x01" * 16])
    answer = result.response.topics[0]
    assert (answer.error_code, answer.topic_id, answer.num_partitions, answer.replication_factor) == (
        0,
        topic.topic_id,
        2,
        1,
    )


def test_the_answer_shows_every_configuration_and_where_it_comes_from(image, random):
    node = Node(1, {"log.retention.hours": "2", "segment.unknown": "x"})
    answer = decide_create_topics(image, node, request(new("orders", retention_ms="007")), random).response.topics[0]
    shown = {one.name: (one.value, one.config_source) for one in answer.configs}
    assert len(shown) == 33
    assert shown["retention.ms"] == ("007", ConfigSource.TOPIC)
    assert shown["cleanup.policy"] == ("delete", ConfigSource.DEFAULT)
    inherited = decide_create_topics(image, node, request(new("other")), random).response.topics[0]
    assert ("7200000", ConfigSource.STATIC_BROKER) in [(one.value, one.config_source) for one in inherited.configs]


def test_configurations_are_not_shown_to_who_may_not_describe_them(image, node, random):
    result = decide_create_topics(image, node, request(new("orders")), random, may_describe=lambda name: False)
    answer = result.response.topics[0]
    assert (answer.error_code, answer.topic_config_error_code, answer.configs) == (0, 29, None)
    assert (answer.num_partitions, answer.replication_factor) == (-1, -1)
    assert result.records


def test_minus_one_takes_the_broker_s_defaults(cluster, random):
    node = Node(1, {"num.partitions": "3", "default.replication.factor": "2"})
    answer = decide_create_topics(cluster(1, 2), node, request(new("orders", -1, -1)), random).response.topics[0]
    assert (answer.num_partitions, answer.replication_factor) == (3, 2)


def test_validate_only_answers_alike_and_writes_nothing(image, node, random):
    result = decide_create_topics(image, node, request(new("orders", 4), validate_only=True), random)
    assert result.records == []
    assert (result.response.topics[0].error_code, result.response.topics[0].num_partitions) == (0, 4)


@pytest.mark.parametrize(
    ("topic", "code", "says"),
    [
        (new("or@cle"), ErrorCode.INVALID_TOPIC_EXCEPTION, "'or@cle'"),
        (new(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
        (new("."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'.'"),
        (new("a" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "249"),
        (new("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "prohibited"),
        (new("there"), ErrorCode.TOPIC_ALREADY_EXISTS, "already exists"),
        (new("with_dot"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topic: with.dot"),
        (new("x", 0), ErrorCode.INVALID_PARTITIONS, "not 0"),
        (new("x", -2), ErrorCode.INVALID_PARTITIONS, "not -2"),
        (new("x", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "not 0"),
        (new("x", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR, "only 1 broker(s) are registered"),
        (new("x", 10_001), ErrorCode.POLICY_VIOLATION, "10001 partitions"),
        (new("x", nope="1"), ErrorCode.INVALID_CONFIG, "nope"),
        (new("x", retention_ms="-5"), ErrorCode.INVALID_CONFIG, "-5 is below -1"),
        (new("x", retention_ms=None), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (assigned("x", [1], num_partitions=1), ErrorCode.INVALID_REQUEST, "number of partitions"),
        (assigned("x", [1], replication_factor=1), ErrorCode.INVALID_REQUEST, "replication factor"),
        (assigned("x", [7]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 7"),
        (assigned("x", []), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replicas"),
        (assigned("x", [1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (assigned("x", [1], [1], indexes=[0, 2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "without a gap"),
        (assigned("x", [1], [1], indexes=[0, 0]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(with_topic, node, random, topic, code, says):
    image = with_topic(new("there"), new("with.dot"))
    result = decide_create_topics(image, node, request(topic), random)
    assert result.records == []
    assert result.response.topics[0].error_code == code
    assert says in (result.response.topics[0].error_message or "")


def test_one_bad_topic_leaves_the_others_of_the_request_alone(image, node, random):
    result = decide_create_topics(image, node, request(new("bad", 0), new("good")), random)
    assert [answer.error_code for answer in result.response.topics] == [ErrorCode.INVALID_PARTITIONS, 0]
    assert [record.name for record in result.records if isinstance(record, TopicRecord)] == ["good"]


def test_a_name_that_stands_twice_in_a_request_is_refused_once(image, node, random):
    result = decide_create_topics(image, node, request(new("a"), new("a"), new("b")), random)
    assert [(one.name, one.error_code) for one in result.response.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", 0),
    ]


def test_names_that_would_collide_in_metrics_are_refused_within_one_request_too(image, node, random):
    result = decide_create_topics(image, node, request(new("a.b"), new("a_b")), random)
    assert [one.error_code for one in result.response.topics] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_who_may_not_create_is_told_so(image, node, random):
    result = decide_create_topics(image, node, request(new("a")), random, may_create=lambda name: False)
    assert result.response.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_leaders_take_turns_and_racks_are_spread(cluster, random):
    image = cluster(1, 2, 3, 4, racks={1: "a", 2: "a", 3: "b", 4: "b"})
    placed = place(image, 8, 2, random)
    assert sorted(replicas[0] for replicas in placed) == [1, 1, 2, 2, 3, 3, 4, 4]
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    assert all(racks[first] != racks[second] for first, second in placed)


@pytest.mark.parametrize("ask_by", ["name", "old name", "id"])
def test_a_topic_is_deleted_by_name_or_by_id(with_topic, node, ask_by):
    image = with_topic(new("orders"))
    topic_id = image.topics["orders"].id
    ask = {
        "name": DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]),
        "old name": DeleteTopicsRequest(topic_names=["orders"]),
        "id": DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)]),
    }[ask_by]
    result = decide_delete_topics(image, node, ask, 6)
    assert [record.topic_id for record in result.records] == [topic_id]
    answer = result.response.responses[0]
    assert (answer.name, answer.topic_id, answer.error_code) == ("orders", topic_id, 0)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ([DeleteTopicState(name="missing")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([DeleteTopicState(topic_id=b"x" * 16)], ErrorCode.UNKNOWN_TOPIC_ID),
        ([DeleteTopicState()], ErrorCode.INVALID_REQUEST),
        ([DeleteTopicState(name="orders", topic_id=b"x" * 16)], ErrorCode.INVALID_REQUEST),
        ([DeleteTopicState(name="orders"), DeleteTopicState(name="orders")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_deleted_is_refused(with_topic, node, asked, code):
    result = decide_delete_topics(with_topic(new("orders")), node, DeleteTopicsRequest(topics=asked), 6)
    assert [answer.error_code for answer in result.response.responses] == [code]
    assert result.records == []


def test_a_name_and_the_id_of_the_same_topic_delete_it_once(with_topic, node):
    image = with_topic(new("orders"))
    asked = [DeleteTopicState(topic_id=image.topics["orders"].id), DeleteTopicState(name="orders")]
    result = decide_delete_topics(image, node, DeleteTopicsRequest(topics=asked), 6)
    assert [answer.error_code for answer in result.response.responses] == [0, ErrorCode.INVALID_REQUEST]
    assert len(result.records) == 1


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_switched_off(with_topic, version, code):
    node = Node(1, {"delete.topic.enable": "false"})
    result = decide_delete_topics(with_topic(new("orders")), node, DeleteTopicsRequest(topic_names=["orders"]), version)
    assert (result.response.responses[0].error_code, result.records) == (code, [])


def test_partitions_are_added_behind_those_that_are_there(with_topic, random, replay):
    image = with_topic(new("orders", 2))
    asked = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=4, assignments=None)])
    result = decide_create_partitions(image, asked, random)
    assert result.response.results[0].error_code == 0
    assert sorted(replay(image, *result.records).topics["orders"].partitions) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code"),
    [
        ("orders", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("missing", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[7]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 20_000, None, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(with_topic, random, name, count, assignments, code):
    rows = None if assignments is None else [CreatePartitionsAssignment(broker_ids=row) for row in assignments]
    asked = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count, assignments=rows)])
    result = decide_create_partitions(with_topic(new("orders", 2)), asked, random)
    assert (result.response.results[0].error_code, result.records) == (code, [])


def test_partitions_added_during_a_move_have_as_many_replicas_as_it_ends_with(random):
    image = moves.cluster(moves.partition([4, 1, 2, 3], [1, 2, 3], adding=[4], removing=[1]))
    chosen = CreatePartitionsAssignment(broker_ids=[1, 2, 3])
    for assignments in (None, [chosen]):
        topic = CreatePartitionsTopic(name="orders", count=2, assignments=assignments)
        result = decide_create_partitions(image, CreatePartitionsRequest(topics=[topic]), random)
        assert result.response.results[0].error_code == 0
        assert [len(one.replicas) for one in result.records] == [3]


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, TRANSACTIONS_TOPIC])
def test_an_internal_topic_fits_a_single_broker(image, node, random, replay, name):
    result = decide_create_topics(image, node, request(internal_topic(image, node, name)), random)
    answer = result.response.topics[0]
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 50, 1)
    effective = topic_config(replay(image, *result.records), node, name)
    assert (effective["cleanup.policy"], effective["min.insync.replicas"]) == ("compact", "1")
