"""What brokers say to each other's share coordinators, one partition a message, and how it is read back."""

from __future__ import annotations

from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.share.requests import Delete, Initialize, Read, Summarize, Write
from penstock.core.share.state import ShareSummary
from penstock.protocol.generated import (
    delete_share_group_state_request as delete,
)
from penstock.protocol.generated import (
    initialize_share_group_state_request as initialize,
)
from penstock.protocol.generated import (
    read_share_group_state_request as read,
)
from penstock.protocol.generated import (
    read_share_group_state_summary_request as summarize,
)
from penstock.protocol.generated import (
    write_share_group_state_request as write,
)


def initialize_request(asked: Initialize) -> initialize.InitializeShareGroupStateRequest:
    group_id, topic_id, index = asked.key
    one = initialize.PartitionData(partition=index, state_epoch=asked.state_epoch, start_offset=asked.start_offset)
    topic = initialize.InitializeStateData(topic_id=topic_id, partitions=[one])
    return initialize.InitializeShareGroupStateRequest(group_id=group_id, topics=[topic])


def read_request(asked: Read) -> read.ReadShareGroupStateRequest:
    group_id, topic_id, index = asked.key
    one = read.PartitionData(partition=index, leader_epoch=asked.leader_epoch)
    topic = read.ReadStateData(topic_id=topic_id, partitions=[one])
    return read.ReadShareGroupStateRequest(group_id=group_id, topics=[topic])


def write_request(asked: Write) -> write.WriteShareGroupStateRequest:
    group_id, topic_id, index = asked.key
    one = write.PartitionData(
        partition=index,
        state_epoch=asked.state_epoch,
        leader_epoch=asked.leader_epoch,
        start_offset=asked.start_offset,
        delivery_complete_count=asked.delivery_complete_count,
        state_batches=[write.StateBatch(**batch._asdict()) for batch in asked.batches],
    )
    topic = write.WriteStateData(topic_id=topic_id, partitions=[one])
    return write.WriteShareGroupStateRequest(group_id=group_id, topics=[topic])


def delete_request(asked: Delete) -> delete.DeleteShareGroupStateRequest:
    group_id, topic_id, index = asked.key
    topic = delete.DeleteStateData(topic_id=topic_id, partitions=[delete.PartitionData(partition=index)])
    return delete.DeleteShareGroupStateRequest(group_id=group_id, topics=[topic])


def summary_request(asked: Summarize) -> summarize.ReadShareGroupStateSummaryRequest:
    group_id, topic_id, index = asked.key
    one = summarize.PartitionData(partition=index, leader_epoch=asked.leader_epoch)
    topic = summarize.ReadStateSummaryData(topic_id=topic_id, partitions=[one])
    return summarize.ReadShareGroupStateSummaryRequest(group_id=group_id, topics=[topic])


def told_summary(result: Any) -> ShareSummary:
    return ShareSummary(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count)


def only_result(answer: Any) -> Any:
    """The one partition of an answer. KafkaError where it was refused."""
    results = [partition for topic in answer.results for partition in topic.partitions]
    if len(results) != 1:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a share coordinator did not answer what it was asked")
    if results[0].error_code:
        raise KafkaError(ErrorCode(results[0].error_code), results[0].error_message)
    return results[0]
