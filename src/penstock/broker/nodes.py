"""The configurations of a cluster whose nodes share a machine: what `penstock up` and the testing cluster start."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from penstock.base.ports import Random

VOTERS_MAX = 5
"""Nodes beyond these keep no vote: every change of metadata waits for a majority of the voters"""
_COPIES = 3
_EVERY_ADDRESS = ("0.0.0.0", "::", "")
_PORTS = range(20_000, 32_000)
"""below those that connections are given: one of them could be in the way of a node that starts again"""
_TRIES = 100


class Ports(NamedTuple):
    client: int
    controller: int


def node_settings(
    nodes: Mapping[int, Ports], voters: Sequence[int], host: str, cluster_id: str | None
) -> dict[int, dict[str, str]]:
    """By node id. `voters`: the nodes that are controllers too. `cluster_id`: None where a node alone may choose."""
    told = told_host(host)
    quorum = ",".join(f"{voter}@{told}:{nodes[voter].controller}" for voter in voters)
    found = {}
    for node, ports in nodes.items():
        votes = node in voters
        controller = f",CONTROLLER://{host}:{ports.controller}" if votes else ""
        found[node] = {
            "process.roles": "broker,controller" if votes else "broker",
            "node.id": str(node),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{host}:{ports.client}{controller}",
            "advertised.listeners": f"PLAINTEXT://{told}:{ports.client}",
            "controller.quorum.voters": quorum,
            **({"penstock.cluster.id": cluster_id} if cluster_id is not None else {}),
        }
    return found


def copies(nodes: int) -> dict[str, str]:
    """Three copies, two of which must be in sync, where there are as many nodes: what a cluster is started for.

    With fewer, as many copies as there are nodes, and one is enough.
    """
    factor, in_sync = str(min(_COPIES, nodes)), "2" if nodes >= _COPIES else "1"
    internal = {
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": in_sync,
    }
    if nodes == 1:
        return internal
    return {**internal, "default.replication.factor": factor, "min.insync.replicas": in_sync}


def told_host(host: str) -> str:
    """One address for all: where the host is "every address", clients are told localhost."""
    return "localhost" if host in _EVERY_ADDRESS else host


def free_ports(count: int, random: Random, host: str = "127.0.0.1") -> list[Ports]:
    """Pairs of ports that were free a moment ago: all are bound at once, so that they differ."""
    address = host if host not in ("", "::") else "0.0.0.0"
    with ExitStack() as held:
        numbers = [_bind(held.enter_context(socket.socket()), address, random) for _ in range(2 * count)]
    return [Ports(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]


def _bind(one: socket.socket, address: str, random: Random) -> int:
    """To a port of ours that is free; where none is soon found, to one that the system gives."""
    for _ in range(_TRIES):
        with suppress(OSError):
            one.bind((address, _PORTS[random.below(len(_PORTS))]))
            break
    else:
        one.bind((address, 0))
    return int(one.getsockname()[1])
