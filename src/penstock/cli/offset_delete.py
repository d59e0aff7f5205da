"""OffsetDelete, which confluent-kafka does not offer: asked over our own client."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.cli.failures import Failure
from penstock.cli.own_client import own_client
from penstock.wire import group_admin

_CAUSES = {
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "a member of the group reads that topic; stop its consumers first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group; `penstock group ls` lists them",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop its consumers first",
}


def delete_offsets(args: argparse.Namespace, group: str, partitions: Sequence[TopicPartition]) -> None:
    """The group forgets what it committed in these partitions."""
    with own_client(args) as client:
        try:
            client.run(group_admin.delete_offsets(client.cluster, group, partitions))
        except KafkaError as error:
            raise Failure(f"cannot forget offsets of the group {group!r}: {error}", _CAUSES.get(error.code)) from None
