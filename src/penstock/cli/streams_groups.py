"""Streams groups for `penstock group`, which confluent-kafka does not show: asked over our own client."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from penstock.cli.bounds import Lags, Standing
from penstock.cli.options import make_admin
from penstock.cli.output import emit, fields, table
from penstock.cli.own_client import own_client

if TYPE_CHECKING:
    from penstock.protocol.generated.streams_group_describe_response import DescribedGroup, Member, TaskIds


def describe(args: argparse.Namespace) -> None:
    """State, topology, members and lag."""
    found = _described(args)
    with make_admin(args) as admin:
        behind = Lags(admin, {args.group: Standing(admin.group_offsets(args.group), {})})
    lags, lag = behind.by_group[args.group], behind.total(args.group)
    topology = found.topology
    head = {
        "group": found.group_id,
        "state": found.group_state.lower(),
        "type": "streams",
        "epoch": found.group_epoch,
        "topology_epoch": None if topology is None else topology.epoch,
        "subtopologies": len((topology.subtopologies or ()) if topology is not None else ()),
    }

    def text() -> None:
        fields({**head, "members": len(found.members), "lag": lag})
        if lags:
            print()
            rows = [(one.topic, one.partition, one.committed, one.end, one.lag) for one in lags]
            table(["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"], rows)

    emit(args, {**head, "members": _members(found), "lag": lag, "partitions": lags}, text)
    behind.bounds.check()


def members(args: argparse.Namespace) -> None:
    found = _members(_described(args))
    rows = [
        (one["client_id"], one["host"], one["member_id"], one["epoch"], one["active"], one["standby"]) for one in found
    ]
    emit(args, found, lambda: table(["CLIENT", "HOST", "MEMBER", "EPOCH", "ACTIVE", "STANDBY"], rows))


def _described(args: argparse.Namespace) -> DescribedGroup:
    from penstock.wire.streams_group_admin import describe_streams_group

    with own_client(args) as client:
        return client.run(describe_streams_group(client.cluster, args.group))


def _members(found: DescribedGroup) -> list[dict[str, Any]]:
    return [_member(one) for one in sorted(found.members, key=lambda one: (one.client_id, one.member_id))]


def _member(one: Member) -> dict[str, Any]:
    return {
        "member_id": one.member_id,
        "client_id": one.client_id,
        "host": one.client_host,
        "process_id": one.process_id,
        "epoch": one.member_epoch,
        "active": _tasks(one.assignment.active_tasks),
        "standby": _tasks(one.assignment.standby_tasks),
    }


def _tasks(found: list[TaskIds]) -> list[str]:
    """As Kafka Streams writes them: 0_3 is partition 3 of subtopology 0."""
    return [f"{one.subtopology_id}_{index}" for one in found for index in one.partitions]
