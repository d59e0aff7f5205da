"""Topics come and go: CreateTopics and DeleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from penstock.base.configs.define import ConfigSource, ResourceType
from penstock.base.configs.topic import TOPIC_CONFIGS, check_topic_configs
from penstock.base.configs.values import Value
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import METADATA_TOPIC, NO_ID, random_id, topic_name_fault
from penstock.base.limits import METADATA_RECORDS_PER_REQUEST_MAX
from penstock.base.ports import Random
from penstock.core.controller.placement import check_assignment, new_partition, place
from penstock.core.controller.result import Result, check_record_count
from penstock.core.metadata.effective import Node, Setting, broker_layers, broker_typed, inherited
from penstock.core.metadata.image import Image
from penstock.core.metadata.records import partition_record
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from penstock.protocol.generated.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.generated.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from penstock.protocol.generated.remove_topic_record import RemoveTopicRecord
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.protocol.message import Message

Allowed = Callable[[str], bool]
USE_DEFAULT = -1


def everyone(_name: str) -> bool:
    """The check of a cluster without an authorizer."""
    return True


def decide_create_topics(
    image: Image,
    node: Node,
    request: CreateTopicsRequest,
    random: Random,
    *,
    may_create: Allowed = everyone,
    may_describe: Allowed = everyone,
) -> Result[CreateTopicsResponse]:
    """CreateTopics. A topic that `may_describe` refuses is created, but its configurations are not shown."""
    fault = _too_many(image, node, request)
    if fault is not None:
        return Result(CreateTopicsResponse(topics=[_refused(topic.name, fault) for topic in request.topics]))
    answers: dict[str, CreatableTopicResult] = {}
    records: list[Message] = []
    names = Counter(topic.name for topic in request.topics)
    defaults = _default_configs(image, node)
    collisions = _collision_names(image) if any("." in name or "_" in name for name in names) else {}
    for topic in request.topics:
        if topic.name in answers:
            continue
        try:
            _check_name(image, topic.name, names[topic.name], collisions, may_create)
            new, answer = _create(image, node, topic, random, defaults if may_describe(topic.name) else None)
            check_record_count(len(records) + len(new))
        except KafkaError as error:
            answers[topic.name] = _refused(topic.name, error)
            continue
        answers[topic.name] = answer
        records += new
        if collisions or "." in topic.name or "_" in topic.name:
            collisions.setdefault(topic.name.replace(".", "_"), topic.name)
    return Result(CreateTopicsResponse(topics=list(answers.values())), [] if request.validate_only else records)


def _too_many(image: Image, node: Node, request: CreateTopicsRequest) -> KafkaError | None:
    default = broker_typed(image, node, "num.partitions")
    assert isinstance(default, int)
    asked = sum(
        len(topic.assignments) or (default if topic.num_partitions == USE_DEFAULT else max(0, topic.num_partitions))
        for topic in request.topics
    )
    if asked <= METADATA_RECORDS_PER_REQUEST_MAX:
        return None
    text = f"{asked} partitions in one request are too many, the limit is {METADATA_RECORDS_PER_REQUEST_MAX}: split it"
    return KafkaError(ErrorCode.POLICY_VIOLATION, text)


def _collision_names(image: Image) -> dict[str, str]:
    """Topics with a dot or an underscore, by the name that metrics show: there, both look the same."""
    return {name.replace(".", "_"): name for name in image.topics if "." in name or "_" in name}


def _check_name(image: Image, name: str, times: int, collisions: dict[str, str], may_create: Allowed) -> None:
    if times > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Duplicate topic name: {name!r} stands {times} times in the request."
        )
    if name == METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if not may_create(name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    fault = topic_name_fault(name)
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = collisions.get(name.replace(".", "_")) if "." in name or "_" in name else None
    if other is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _create(
    image: Image, node: Node, topic: CreatableTopic, random: Random, defaults: list[Setting] | None
) -> tuple[list[Message], CreatableTopicResult]:
    configs = _own_configs(topic)
    replicas = _manual(image, topic) if topic.assignments else _placed(image, node, topic, random)
    topic_id = random_id(random)
    records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    for name, value in configs.items():
        records.append(ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic.name, name=name, value=value))
    for index, brokers in enumerate(replicas):
        records.append(partition_record(topic_id, index, new_partition(image, brokers)))
    answer = CreatableTopicResult(name=topic.name, topic_id=topic_id, error_message=None)
    if defaults is not None:
        answer.num_partitions = len(replicas)
        answer.replication_factor = len(replicas[0])
        answer.configs = _shown_configs(defaults, configs)
    else:
        answer.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answer.configs = None
    return records, answer


def _own_configs(topic: CreatableTopic) -> dict[str, str]:
    without_value = [config.name for config in topic.configs if config.value is None]
    if without_value:
        text = "Null value not supported for topic configs: " + ",".join(without_value)
        raise KafkaError(ErrorCode.INVALID_CONFIG, text)
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    check_topic_configs(configs)
    return configs


def _manual(image: Image, topic: CreatableTopic) -> list[list[int]]:
    for what, value in (
        ("replication factor", topic.replication_factor),
        ("number of partitions", topic.num_partitions),
    ):
        if value != USE_DEFAULT:
            text = f"A manual partition assignment was given, so the {what} must be -1, not {value}."
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    assigned: dict[int, list[int]] = {}
    for one in topic.assignments:
        if one.partition_index in assigned:
            text = f"Partition {one.partition_index} is assigned more than once."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        factor = len(next(iter(assigned.values()))) if assigned else None
        check_assignment(image, one.partition_index, one.broker_ids, factor)
        assigned[one.partition_index] = list(one.broker_ids)
    if sorted(assigned) != list(range(len(assigned))):
        text = f"Partitions must be numbered from 0 without a gap, not {sorted(assigned)}."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return [assigned[index] for index in range(len(assigned))]


def _placed(image: Image, node: Node, topic: CreatableTopic, random: Random) -> list[list[int]]:
    count, factor = topic.num_partitions, topic.replication_factor
    if factor < USE_DEFAULT or factor == 0:
        text = f"Replication factor must be larger than 0, or -1 to use the default value, not {factor}."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if count < USE_DEFAULT or count == 0:
        text = f"The number of partitions must be larger than 0, or -1 to use the default value, not {count}."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    if count == USE_DEFAULT:
        count = _number(broker_typed(image, node, "num.partitions"))
    if factor == USE_DEFAULT:
        factor = _number(broker_typed(image, node, "default.replication.factor"))
    return place(image, count, factor, random)


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _default_configs(image: Image, node: Node) -> list[Setting]:
    layers = broker_layers(image, node)
    return [Setting(one.name, *inherited(layers, one)) for one in TOPIC_CONFIGS.values() if not one.internal]


def _shown_configs(defaults: list[Setting], own: dict[str, str]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(name=name, value=own[name], config_source=ConfigSource.TOPIC)
        if name in own
        else CreatableTopicConfigs(name=name, value=value, config_source=source)
        for name, value, source in defaults
    ]


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def decide_delete_topics(
    image: Image,
    node: Node,
    request: DeleteTopicsRequest,
    version: int,
    *,
    may_delete: Allowed = everyone,
    may_describe: Allowed = everyone,
) -> Result[DeleteTopicsResponse]:
    """DeleteTopics, by name or by id. What may not be described looks as if it did not exist."""
    asked: list[tuple[str | None, bytes]] = [(name, NO_ID) for name in request.topic_names]
    asked += [(topic.name, topic.topic_id) for topic in request.topics]
    if broker_typed(image, node, "delete.topic.enable") is not True:
        return Result(DeleteTopicsResponse(responses=[_deletion_disabled(*one, version) for one in asked]))
    times = Counter(asked)
    answers: dict[tuple[str | None, bytes], DeletableTopicResult] = {}
    records: list[Message] = []
    removed: dict[bytes, None] = {}
    for name, topic_id in asked:
        if (name, topic_id) in answers:
            continue
        try:
            found = _deletable(image, name, topic_id, times[(name, topic_id)], may_delete, may_describe)
            if found.topic_id in removed:
                text = "The provided topic name maps to an ID that was already supplied."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            removed[found.topic_id] = None
            records.append(RemoveTopicRecord(topic_id=found.topic_id))
            answers[(name, topic_id)] = found
        except KafkaError as error:
            told = name
            answers[(name, topic_id)] = DeletableTopicResult(
                name=told, topic_id=topic_id, error_code=error.code, error_message=error.message
            )
    return Result(DeleteTopicsResponse(responses=list(answers.values())), records)


def _deletable(
    image: Image, name: str | None, topic_id: bytes, times: int, may_delete: Allowed, may_describe: Allowed
) -> DeletableTopicResult:
    if name is not None and topic_id != NO_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if name is None and topic_id == NO_ID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if name is None else 'name'}.")
    topic = image.topic_by_id(topic_id) if name is None else image.topic(name)
    if name is not None and not may_describe(name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
    if not may_delete(topic.name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return DeletableTopicResult(name=topic.name, topic_id=topic.id)


def _deletion_disabled(name: str | None, topic_id: bytes, version: int) -> DeletableTopicResult:
    # Clients before version 3 do not know the code of their own for it.
    code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    text = "Topic deletion is disabled: delete.topic.enable is false."
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=text)
