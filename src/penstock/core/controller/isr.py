"""A leader changes its partition's in-sync replicas: AlterPartition (KIP-497, KIP-841, KIP-903)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.controller.brokers import check_broker_epoch
from penstock.core.controller.elections import RECOVERED, RECOVERING, Election, Wish, decide_change
from penstock.core.controller.outlook import Outlook
from penstock.core.controller.result import Result
from penstock.core.metadata.delta import changed_partition
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image, Partition, Topic
from penstock.protocol.generated import alter_partition_response as answers
from penstock.protocol.generated.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData
from penstock.protocol.generated.alter_partition_response import AlterPartitionResponse
from penstock.protocol.message import Message

_NO_CHANGE = -2
_EPOCH_UNKNOWN = -1


def decide_alter_partition(image: Image, node: Node, request: AlterPartitionRequest) -> Result[AlterPartitionResponse]:
    """Each partition is judged alone. What is answered is the partition as it will be."""
    try:
        check_broker_epoch(image, request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return Result(AlterPartitionResponse(error_code=error.code))
    outlook = Outlook(image, node)
    records: list[Message] = []
    response = AlterPartitionResponse()
    for asked in request.topics:
        topic = image.topic_by_id(asked.topic_id)
        answered = [_alter(outlook, request.broker_id, topic, one, records) for one in asked.partitions]
        response.topics.append(answers.TopicData(topic_id=asked.topic_id, partitions=answered))
    return Result(response, records)


def _alter(
    outlook: Outlook, broker_id: int, topic: Topic | None, asked: PartitionData, records: list[Message]
) -> answers.PartitionData:
    answer = answers.PartitionData(partition_index=asked.partition_index)
    isr = _new_isr(asked)
    try:
        partition = _checked(outlook.image, broker_id, topic, asked, isr)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    assert topic is not None
    election = Election.UNCLEAN if outlook.unclean_allowed(topic.name) else Election.ONLINE
    wish = Wish(
        isr=[one.broker_id for one in isr], leader_recovery_state=asked.leader_recovery_state, election=election
    )
    record = decide_change(outlook, topic, asked.partition_index, wish)
    if record is not None:
        records.append(record)
        partition = changed_partition(partition, record)
        if record.leader not in (_NO_CHANGE, broker_id):
            # The change completed a reassignment that takes the leader away: it must look at the metadata first.
            answer.error_code = ErrorCode.NEW_LEADER_ELECTED
            return answer
    answer.leader_id, answer.leader_epoch = partition.leader, partition.leader_epoch
    answer.isr, answer.partition_epoch = list(partition.isr), partition.partition_epoch
    answer.leader_recovery_state = partition.leader_recovery_state
    return answer


def _new_isr(asked: PartitionData) -> list[BrokerState]:
    """Version 2 names brokers without their epochs."""
    if asked.new_isr_with_epochs:
        return asked.new_isr_with_epochs
    return [BrokerState(broker_id=one) for one in asked.new_isr]


def _checked(
    image: Image, broker_id: int, topic: Topic | None, asked: PartitionData, isr: list[BrokerState]
) -> Partition:
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    _check_epochs(broker_id, partition, asked)
    _check_isr(partition, asked, [one.broker_id for one in isr])
    if any(_is_ineligible(image, one) for one in isr):
        raise KafkaError(ErrorCode.INELIGIBLE_REPLICA)
    return partition


def _check_epochs(broker_id: int, partition: Partition, asked: PartitionData) -> None:
    if asked.leader_epoch > partition.leader_epoch or asked.partition_epoch > partition.partition_epoch:
        # The leader has seen a later image than we have: another controller is active by now.
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if asked.leader_epoch < partition.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if broker_id != partition.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if asked.partition_epoch < partition.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)


def _check_isr(partition: Partition, asked: PartitionData, isr: list[int]) -> None:
    state = asked.leader_recovery_state
    if (
        len(set(isr)) < len(isr)
        or any(one not in partition.replicas for one in isr)
        or partition.leader not in isr
        or (state == RECOVERING and len(isr) > 1)
        or (state == RECOVERING and partition.leader_recovery_state == RECOVERED)
    ):
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _is_ineligible(image: Image, named: BrokerState) -> bool:
    """It is not there or about to go, or it has been restarted since the leader saw it caught up."""
    broker = image.brokers.get(named.broker_id)
    if broker is None or not broker.active:
        return True
    return named.broker_epoch not in (_EPOCH_UNKNOWN, broker.epoch)
