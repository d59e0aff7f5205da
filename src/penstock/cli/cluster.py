"""`penstock cluster`: who is in the cluster, and whether it is well."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.cli.failures import Failure, report
from penstock.cli.options import add_client, make_admin
from penstock.cli.output import emit, fields, is_json, note, table
from penstock.cli.own_client import own_client
from penstock.cli.quorum import NoController, describe_quorum

if TYPE_CHECKING:
    from penstock.client.admin_types import TopicInfo
    from penstock.protocol.generated.describe_quorum_response import ReplicaState

LEFT_S_MIN = 0.5
"""for the last questions, when the first have used up the time"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_client(parser)
    parser.set_defaults(handler=show)


def show(args: argparse.Namespace) -> int:
    """1 where no controller answers: brokers then tell what they knew last."""
    end = time.monotonic() + args.timeout
    with make_admin(args) as admin:
        found = admin.cluster()
        admin.timeout_s = _left_s(end)
        partitions = _health(admin.topics(internal=True))
    quorum: dict[str, Any] | None = None
    silent: NoController | None = None
    try:
        quorum = _quorum(args, _left_s(end))
    except NoController as failure:
        silent = failure
    # What a broker tells of the controller is what it knew last; without an active one, any of them.
    controller_id = None if silent else found.controller_id if quorum is None else quorum["leader_id"]

    def text() -> None:
        fields({"cluster id": found.cluster_id, "controller": controller_id})
        print()
        table(["BROKER", "HOST", "PORT", "RACK"], [(b.id, b.host, b.port, b.rack) for b in found.brokers])
        print()
        fields({name.replace("_", " "): value for name, value in partitions.items()})
        if quorum is not None:
            print()
            rows = [(one["id"], one["role"], one["end_offset"], one["behind"]) for one in quorum["nodes"]]
            table(["NODE", f"QUORUM, EPOCH {quorum['epoch']}", "END", "BEHIND"], rows)

    result = {
        "cluster_id": found.cluster_id,
        "controller_id": controller_id,
        "brokers": found.brokers,
        "partitions": partitions,
        "quorum": quorum,
    }
    emit(args, result, text)
    if silent is None:
        return 0
    sys.stdout.flush()
    told = Failure(f"{silent}; what is shown may be old, and name brokers that are away", silent.hint)
    report(told, as_json=is_json(args))
    return 1


def _left_s(end: float) -> float:
    return max(LEFT_S_MIN, end - time.monotonic())


def _health(topics: Iterable[TopicInfo]) -> dict[str, int]:
    every = [partition for topic in topics for partition in topic.partitions]
    return {
        "partitions": len(every),
        "without_leader": sum(one.leader is None for one in every),
        "under_replicated": sum(len(one.isr) < len(one.replicas) for one in every),
    }


def _quorum(args: argparse.Namespace, timeout_s: float) -> dict[str, Any] | None:
    """None where this cluster does not tell: it may be too old for it, or we may not ask."""
    try:
        with own_client(args, timeout_s) as client:
            found = describe_quorum(client, timeout_s)
    except NoController:
        raise
    except Failure as failure:
        note(f"the metadata quorum is not shown: {failure}")
        return None
    end = max((one.log_end_offset for one in found.current_voters), default=0)
    nodes = [
        _node(one, "leader" if one.replica_id == found.leader_id else "voter", end) for one in found.current_voters
    ]
    nodes += [_node(one, "observer", end) for one in found.observers]
    return {
        "leader_id": found.leader_id,
        "epoch": found.leader_epoch,
        "high_watermark": found.high_watermark,
        "nodes": sorted(nodes, key=lambda one: (one["id"], one["role"])),
    }


def _node(one: ReplicaState, role: str, end: int) -> dict[str, Any]:
    """A node that the leader has not heard of has no end."""
    known = one.log_end_offset >= 0
    return {
        "id": one.replica_id,
        "role": role,
        "end_offset": one.log_end_offset if known else None,
        "behind": end - one.log_end_offset if known else None,
    }
