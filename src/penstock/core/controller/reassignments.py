"""Partitions move to other brokers: AlterPartitionReassignments and ListPartitionReassignments (KIP-455, KIP-1073).

First the new replicas are added to the old ones; once all of them are in sync the old ones go: that is part of every
change of the ISR (`elections`). A reassignment that needs no new replica is done at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.elections import Election, Wish, decide_change, directory_of
from penstock.core.controller.outlook import Outlook
from penstock.core.controller.placement import check_assignment
from penstock.core.controller.result import Result, check_record_count
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.protocol.generated.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from penstock.protocol.generated.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from penstock.protocol.generated.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from penstock.protocol.generated.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.message import Message


def decide_alter_reassignments(
    image: Image, node: Node, request: AlterPartitionReassignmentsRequest
) -> Result[AlterPartitionReassignmentsResponse]:
    outlook = Outlook(image, node)
    records: list[Message] = []
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=request.allow_replication_factor_change
    )
    for asked in request.topics:
        results = []
        for one in asked.partitions:
            result = ReassignablePartitionResponse(partition_index=one.partition_index, error_message=None)
            try:
                record = _reassigned(outlook, asked.name, one, request.allow_replication_factor_change)
                check_record_count(len(records) + 1)
                records += [record] if record is not None else []
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
            results.append(result)
        response.responses.append(ReassignableTopicResponse(name=asked.name, partitions=results))
    return Result(response, records)


def _reassigned(
    outlook: Outlook, name: str, asked: ReassignablePartition, may_change_factor: bool
) -> PartitionChangeRecord | None:
    topic = outlook.image.topic(name)
    if topic is None or asked.partition_index not in topic.partitions:
        text = f"Unable to find partition {name}-{asked.partition_index}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if asked.replicas is None:
        return _cancelled(outlook, topic, asked.partition_index)
    partition = topic.partitions[asked.partition_index]
    check_assignment(outlook.image, asked.partition_index, asked.replicas, None, held=partition.replicas)
    if not may_change_factor and len(asked.replicas) != len(_original(partition)):
        text = f"The replication factor of {name}-{asked.partition_index} would change, which the request forbids."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return decide_change(outlook, topic, asked.partition_index, move(partition, asked.replicas))


def move(partition: Partition, target: Iterable[int]) -> Wish:
    """What to wish for, so that a partition ends on the brokers of `target`, in that order."""
    wanted = list(target)
    removing = sorted(one for one in partition.replicas if one not in wanted)
    adding = sorted(one for one in wanted if one not in partition.replicas or one in partition.adding)
    return Wish(replicas=wanted + removing, removing=removing, adding=adding)


def _original(partition: Partition) -> list[int]:
    return [one for one in partition.replicas if one not in partition.adding]


def _cancelled(outlook: Outlook, topic: Topic, index: int) -> PartitionChangeRecord | None:
    partition = topic.partitions[index]
    if not is_moving(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = _original(partition)
    isr = [one for one in partition.isr if one not in partition.adding]
    unclean = outlook.unclean_allowed(topic.name)
    if not isr and partition.isr and not unclean:
        text = f"{topic.name}-{index} cannot go back: that would require an unclean leader election."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    if not isr and partition.isr and not _is_led(outlook, partition, replicas):
        isr = [] if outlook.image.eligible_leader_replicas_enabled else replicas[:1]
    wish = Wish(
        isr=isr,
        replicas=replicas,
        removing=[],
        adding=[],
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )
    return decide_change(outlook, topic, index, wish)


def _is_led(outlook: Outlook, partition: Partition, replicas: list[int]) -> bool:
    """Whether an unclean election would find somebody."""
    return any(outlook.may_lead(one, directory_of(partition, one)) for one in replicas)


def is_moving(partition: Partition) -> bool:
    return bool(partition.removing or partition.adding)


def list_reassignments(image: Image, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    response = ListPartitionReassignmentsResponse(error_message=None)
    if request.topics is None:
        asked = [(topic.name, sorted(topic.partitions)) for topic in image.topics.values()]
    else:
        asked = [(one.name, one.partition_indexes) for one in request.topics]
    for name, indexes in asked:
        topic = image.topic(name)
        moving = (
            [] if topic is None else [i for i in indexes if i in topic.partitions and is_moving(topic.partitions[i])]
        )
        if topic is not None and moving:
            ongoing = [_ongoing(index, topic.partitions[index]) for index in moving]
            response.topics.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    return response


def _ongoing(index: int, partition: Partition) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=index,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
    )
