"""OffsetDelete, which confluent-kafka does not offer: asked over our own client."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.cli.failures import Failure
from penstock.cli.own_client import own_client
from penstock.protocol.generated.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.generated.offset_delete_response import OffsetDeleteResponse
from penstock.wire.cluster import CoordinatorKind
from penstock.wire.routes import ask_coordinator

_CAUSES = {
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "a member of the group reads that topic; stop its consumers first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group; `penstock group ls` lists them",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop its consumers first",
}


def delete_offsets(args: argparse.Namespace, group: str, partitions: Sequence[TopicPartition]) -> None:
    """The group forgets what it committed in these partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes]
            )
            for topic, indexes in by_topic.items()
        ],
    )
    with own_client(args) as client:
        talk = ask_coordinator(
            client.cluster,
            CoordinatorKind.GROUP,
            group,
            request,
            OffsetDeleteResponse,
            lambda answer: answer.error_code,
        )
        try:
            answer = client.run(talk)
        except KafkaError as error:
            raise Failure(f"cannot forget offsets of the group {group!r}: {error}", _CAUSES.get(error.code)) from None
    for topic_answer in answer.topics:
        for partition in topic_answer.partitions:
            if partition.error_code:
                code = ErrorCode(partition.error_code)
                where = f"{topic_answer.name}-{partition.partition_index}"
                raise Failure(f"cannot forget the offset of {where} in {group!r}: {code.name}", _CAUSES.get(code))
