"""A cluster of three under load whose network is cut: the same clients as in the chaos, the same judge.

One node leads everything, so that clients have no reason to talk to another: cut off from its peers alone, it goes on
to answer them, and nothing that it says is new.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import NewTopic

from proofs import network_spaces
from proofs.cluster_chaos import NODES, PAUSE_LIMIT_S, SESSION_TIMEOUT_S, TOPIC, Figures, judged, told, worst
from proofs.cluster_load import Load
from proofs.cluster_view import View
from proofs.network_spaces import SpacedCluster

ZOMBIE_LIMIT_S = SESSION_TIMEOUT_S + 5.0
"""Half a second after its session it sends its clients away; what they do then takes them a second or two"""


def run(cuts: int = 20, partitions: int = 6, seed: int = 1) -> dict[str, object]:
    """`cuts` of one node, by turns from everybody and from its peers alone."""
    assert network_spaces.available(), "network namespaces need root and iproute2"
    chance = random.Random(seed)
    acked: Figures = {}
    read: Figures = {}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-cuts-") as scratch,
        SpacedCluster(Path(scratch)) as cluster,
    ):
        view = View(cluster.bootstrap, cluster.controllers())
        topic = NewTopic(TOPIC, partitions, replica_assignment=[list(NODES)] * partitions)
        view.admin.create_topics([topic])[TOPIC].result(30)
        view.wait_in_sync(TOPIC, NODES)
        with Load(cluster.bootstrap, TOPIC, partitions) as load:
            for number in range(cuts):
                kind, cut, heal, limit_s = _cut(cluster, number)
                node = view.leaders(TOPIC)[0] if cut == cluster.cut_from_peers else chance.choice(NODES)
                cut(node)
                try:
                    times = load.flowing(time.monotonic())
                except AssertionError as fault:
                    seen = f"leaders {view.leaders(TOPIC)}, controller {view.controller()}"
                    text = f"cut {number}, node {node} {kind}: {fault}; {seen}; brokers said: {cluster.said()}"
                    raise AssertionError(text) from None
                finally:
                    heal(node)
                acked.setdefault(kind, []).append(times[0])
                read.setdefault(kind, []).append(times[1])
                assert max(times) < limit_s, (
                    f"node {node} {kind}: acked after {times[0]} s, read after {times[1]} s, not {limit_s} s"
                )
                view.wait_in_sync(TOPIC, NODES, 120)
    verdict = judged(load)
    return {
        "cuts": cuts,
        "acked_again_seconds": worst(acked),
        "read_again_seconds": worst(read),
        "failed_delivery_reports": len(load.book.failed_reports),
        **told(verdict),
    }


def _cut(cluster: SpacedCluster, number: int) -> tuple[str, Callable[[int], None], Callable[[int], None], float]:
    if number % 2:
        return "cut off from its peers alone", cluster.cut_from_peers, cluster.heal, ZOMBIE_LIMIT_S
    return "cut off from everybody", cluster.unplug, cluster.plug, PAUSE_LIMIT_S
