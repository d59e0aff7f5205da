"""A cluster of three under load grows, and loses one for good: a broker that is added gets its share of leaders and of
data by itself, and one that is gone with its disk is replaced by Apache's kafka-reassign-partitions. The same clients
as in the chaos go on all the while, and the same judge looks at what they saw.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from proofs.cluster_chaos import (
    CONTROLLER_LIMIT_S,
    LEADER_LIMIT_S,
    NODES,
    TOPIC,
    judged,
    make_topic,
    told,
)
from proofs.cluster_load import Load
from proofs.cluster_up import ClusterUp
from proofs.cluster_view import QUIET, View, wait_until
from proofs.kafka_tools import KafkaTools

BALLAST = "ballast"
COPIES = 3
ADDED = 4
SHARE_MIN = 0.75
"""of what each broker would carry if all carried alike"""
VALUE_BYTES = 100_000

Figures = dict[str, object]


def run(
    partitions: int = 12,
    ballast_mb: int = 32,
    balance_every_ms: int = 5_000,
    seed: int = 1,
    settings: dict[str, str] | None = None,
) -> Figures:
    """`ballast_mb`: megabytes in each partition of a topic that nobody writes any more, to be moved with the rest."""
    asked = {"penstock.balance.interval.ms": str(balance_every_ms), **(settings or {})}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-grow-") as scratch,
        ClusterUp(Path(scratch) / "data", settings=asked) as cluster,
    ):
        view = View(cluster.bootstrap, cluster.controllers())
        make_topic(view, partitions)
        fill(cluster.bootstrap, view, partitions, ballast_mb)
        with Load(cluster.bootstrap, TOPIC, partitions) as load:
            grown = grow(cluster, view, load)
            tools = KafkaTools(cluster.bootstrap, Path(scratch))
            replaced = replace(cluster, view, load, random.Random(seed).choice(NODES), tools)
    verdict = judged(load)
    return {
        "balance_interval_ms": balance_every_ms,
        "added": grown,
        "replaced": replaced,
        "failed_delivery_reports": len(load.book.failed_reports),
        "faults_from_poll": len(load.book.poll_faults),
        **told(verdict),
    }


def fill(bootstrap: str, view: View, partitions: int, size_mb: int) -> None:
    view.admin.create_topics([NewTopic(BALLAST, partitions, COPIES)])[BALLAST].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", **QUIET})
    for _ in range(size_mb * 1_000_000 // VALUE_BYTES):
        for partition in range(partitions):
            producer.produce(BALLAST, bytes(VALUE_BYTES), partition=partition)
        assert producer.flush(60) == 0, "the ballast is not acked"


def grow(cluster: ClusterUp, view: View, load: Load) -> Figures:
    """One broker more. Nobody tells the cluster what to do with it."""
    began = time.monotonic()
    cluster.add(ADDED)
    ready_s = time.monotonic() - began
    nodes = [*NODES, ADDED]
    share_s, waited_s = while_flowing(
        load, lambda: has_its_share(cluster, view, nodes), f"node {ADDED} does not get its share", 600
    )
    return {
        "ready_seconds": round(ready_s, 2),
        "has_its_share_after_seconds": round(ready_s + share_s, 1),
        "longest_wait_of_clients_seconds": waited_s,
        "leaders": dict(sorted(led(view, nodes).items())),
        "megabytes": {node: round(size / 1e6, 1) for node, size in carried(cluster, nodes).items()},
    }


def replace(cluster: ClusterUp, view: View, load: Load, lost: int, tools: KafkaTools) -> Figures:
    """A node dies and its disk is gone. An operator moves what it had to those that are left."""
    limit_s = CONTROLLER_LIMIT_S if view.controller() == lost else LEADER_LIMIT_S
    cluster.kill(lost)
    began = time.monotonic()
    flowing_s = max(load.flowing(began))
    assert flowing_s < limit_s, f"clients waited {flowing_s} s, not {limit_s} s"
    shutil.rmtree(cluster.directory / str(lost))
    moves = moved_away(view, lost, [node for node in [*NODES, ADDED] if node != lost])
    plan = tools.file("plan.json", {"version": 1, "partitions": moves})
    asked = time.monotonic()
    # The balancer may have partitions on their way of its own: the tool takes no others besides, unless it is told to.
    tools.run("kafka-reassign-partitions", "--execute", "--additional", "--reassignment-json-file", plan)
    _, waited_s = while_flowing(load, lambda: is_whole_without(view, lost), f"node {lost} is not replaced", 600)
    whole = time.monotonic()
    verified = tools.run("kafka-reassign-partitions", "--verify", "--reassignment-json-file", plan)
    # The balancer may have given leaders another order since, which the tool tells as another set of replicas.
    assert "still in progress" not in verified, verified
    return {
        "node": lost,
        "flowing_again_seconds": flowing_s,
        "partitions_moved": len(moves),
        "whole_again_after_seconds": round(whole - asked, 1),
        "and_since_the_loss_seconds": round(whole - began, 1),
        "longest_wait_of_clients_seconds": waited_s,
    }


def while_flowing(load: Load, done: Callable[[], bool], otherwise: str, timeout_s: float) -> tuple[float, float]:
    """Until it is done: how long that took, and the longest that something sent meanwhile took to be acked and read."""
    waits: list[float] = []

    def seen() -> bool:
        waits.append(max(load.flowing(time.monotonic())))
        return done()

    return wait_until(seen, otherwise, timeout_s), max(waits)


def has_its_share(cluster: ClusterUp, view: View, nodes: list[int]) -> bool:
    return _is_fair(led(view, nodes)) and _is_fair(carried(cluster, nodes))


def _is_fair(load: dict[int, int]) -> bool:
    return load[ADDED] >= SHARE_MIN * sum(load.values()) / len(load)


def led(view: View, nodes: list[int]) -> dict[int, int]:
    """Partitions of all topics by who leads them."""
    leaders = Counter(one.leader for one in view.partitions().values())
    return {node: leaders[node] for node in nodes}


def carried(cluster: ClusterUp, nodes: list[int]) -> dict[int, int]:
    """Bytes of records on each node, but for what it has given away and not deleted yet."""
    return {
        node: sum(
            file.stat().st_size
            for file in (cluster.directory / str(node) / "data").glob("*/*.log")
            if not file.parent.name.endswith("-delete") and not file.parent.name.startswith("__cluster_metadata")
        )
        for node in nodes
    }


def moved_away(view: View, lost: int, left: list[int]) -> list[dict[str, object]]:
    """Each partition that had a copy there gets it on a node that has none. One that the balancer has on its way may
    have copies everywhere: it keeps those that are left."""
    moves: list[dict[str, object]] = []
    for (topic, number), one in sorted(view.partitions().items()):
        if lost in one.replicas:
            kept = [node for node in one.replicas if node != lost]
            others = [node for node in left if node not in kept]
            moves.append({"topic": topic, "partition": number, "replicas": [*kept, *others][:COPIES]})
    return moves


def is_whole_without(view: View, lost: int) -> bool:
    """Whether every partition has all of its copies in sync, and none on the node that is gone."""
    return all(
        lost not in one.replicas and sorted(one.isrs) == sorted(one.replicas) for one in view.partitions().values()
    )
