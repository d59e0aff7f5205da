"""More partitions for a topic: CreatePartitions."""

from __future__ import annotations

from collections import Counter

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Random
from penstock.core.controller.placement import check_assignment, new_partition, place
from penstock.core.controller.result import Result, check_record_count
from penstock.core.controller.topics import Allowed, everyone
from penstock.core.metadata.image import Image, Topic
from penstock.core.metadata.records import partition_record
from penstock.protocol.generated.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.protocol.generated.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from penstock.protocol.message import Message


def decide_create_partitions(
    image: Image, request: CreatePartitionsRequest, random: Random, *, may_alter: Allowed = everyone
) -> Result[CreatePartitionsResponse]:
    answers: dict[str, CreatePartitionsTopicResult] = {}
    records: list[Message] = []
    times = Counter(topic.name for topic in request.topics)
    for asked in request.topics:
        if asked.name in answers:
            continue
        answer = answers[asked.name] = CreatePartitionsTopicResult(name=asked.name)
        try:
            if times[asked.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if not may_alter(asked.name):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            new = _grown(image, asked, random)
            check_record_count(len(records) + len(new))
            records += new
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, error.message
    return Result(CreatePartitionsResponse(results=list(answers.values())), [] if request.validate_only else records)


def _grown(image: Image, asked: CreatePartitionsTopic, random: Random) -> list[Message]:
    topic = image.topic(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{asked.name}' does not exist.")
    now = len(topic.partitions)
    if asked.count == now:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if asked.count < now:
        text = f"The topic {asked.name} currently has {now} partition(s); {asked.count} would not be an increase."
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    check_record_count(asked.count - now)
    replicas = _replicas(image, topic, asked, random)
    return [partition_record(topic.id, now + at, new_partition(image, r)) for at, r in enumerate(replicas)]


def _replicas(image: Image, topic: Topic, asked: CreatePartitionsTopic, random: Random) -> list[list[int]]:
    now = len(topic.partitions)
    more = asked.count - now
    first = topic.partitions[0]
    factor = len([one for one in first.replicas if one not in first.removing])
    if asked.assignments is None:
        return place(image, more, factor, random)
    if len(asked.assignments) != more:
        text = f"{more} partition(s) are to be added, but {len(asked.assignments)} assignment(s) were given."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    for at, assignment in enumerate(asked.assignments):
        check_assignment(image, now + at, assignment.broker_ids, factor)
    return [list(assignment.broker_ids) for assignment in asked.assignments]
