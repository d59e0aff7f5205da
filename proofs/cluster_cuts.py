"""A cluster of three under load whose network is cut, and one whose disk is full: the same clients, the same judge."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from proofs import network_spaces
from proofs.cluster_chaos import NODES, PAUSE_LIMIT_S, TOPIC, Figures, judged, make_topic, told, worst
from proofs.cluster_load import Load
from proofs.cluster_view import View
from proofs.network_spaces import SpacedCluster

ZOMBIE_LIMIT_S = 60.0
"""A leader that clients still reach and nobody else: librdkafka waits for its answer for up to 30 s"""


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
        make_topic(view, partitions)
        with Load(cluster.bootstrap, TOPIC, partitions) as load:
            for number in range(cuts):
                node = chance.choice(NODES)
                kind, cut, heal, limit_s = _cut(cluster, number)
                cut(node)
                try:
                    times = load.flowing(time.monotonic(), ZOMBIE_LIMIT_S)
                finally:
                    heal(node)
                acked.setdefault(kind, []).append(times[0])
                read.setdefault(kind, []).append(times[1])
                assert max(times) < limit_s, (
                    f"{kind}: acked after {times[0]} s, read after {times[1]} s, not {limit_s} s"
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
