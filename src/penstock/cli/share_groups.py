"""Share groups for `penstock group`, which confluent-kafka does not show: asked over our own client."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.output import emit, fields, table
from penstock.cli.own_client import own_client

if TYPE_CHECKING:
    from penstock.protocol.generated.share_group_describe_response import DescribedGroup

_NOT_KNOWN = -1


def describe(args: argparse.Namespace) -> None:
    """State, members and lag."""
    found, rows = _described(args, args.group), lag_rows(args, args.group)
    lag = sum(row["lag"] or 0 for row in rows)
    head = {
        "group": found.group_id,
        "state": found.group_state.lower(),
        "type": "share",
        "assignor": found.assignor_name,
        "epoch": found.group_epoch,
    }
    result = {**head, "members": _members(found), "lag": lag, "partitions": rows}

    def text() -> None:
        fields({**head, "members": len(found.members), "lag": lag})
        if rows:
            print()
            table(["TOPIC", "PARTITION", "START", "LAG"], [list(row.values()) for row in rows])

    emit(args, result, text)


def members(args: argparse.Namespace) -> None:
    found = _members(_described(args, args.group))
    rows = [(one["client_id"], one["host"], one["member_id"], one["epoch"], one["assignment"]) for one in found]
    emit(args, found, lambda: table(["CLIENT", "HOST", "MEMBER", "EPOCH", "PARTITIONS"], rows))


def lag_rows(args: argparse.Namespace, group: str) -> list[dict[str, Any]]:
    """Where the group stands, and how many records are left to it; None where that is not known."""
    from penstock.wire.share_group_admin import share_group_offsets

    with own_client(args) as client:
        topics = client.run(share_group_offsets(client.cluster, group))
    return [
        {
            "topic": topic.topic_name,
            "partition": one.partition_index,
            "start": None if one.start_offset == _NOT_KNOWN else one.start_offset,
            "lag": None if one.lag == _NOT_KNOWN else one.lag,
        }
        for topic in sorted(topics, key=lambda topic: topic.topic_name)
        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
    ]


def _described(args: argparse.Namespace, group: str) -> DescribedGroup:
    from penstock.wire.share_group_admin import describe_share_group

    with own_client(args) as client:
        return client.run(describe_share_group(client.cluster, group))


def _members(found: DescribedGroup) -> list[dict[str, Any]]:
    return [
        {
            "member_id": one.member_id,
            "client_id": one.client_id,
            "host": one.client_host,
            "epoch": one.member_epoch,
            "assignment": [
                f"{t.topic_name}-{index}" for t in one.assignment.topic_partitions for index in t.partitions
            ],
        }
        for one in sorted(found.members, key=lambda one: (one.client_id, one.member_id))
    ]
