"""A cluster of three real processes under load, broken in every way we know: nothing acked is lost, nothing is seen
twice or out of order, and producers and consumers go on within a stated time.

Each break is measured from its moment until something sent after it is acked, and read, in every partition. All clients
are librdkafka's; the producers are idempotent; what all of them saw is judged by the history checker at the end.
"""

from __future__ import annotations

import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import NewTopic

from penstock.sim.check.checker import Verdict, check
from proofs.cluster_load import Load
from proofs.cluster_up import ClusterUp
from proofs.cluster_view import View, wait_until

TOPIC = "chaos"
NODES = (1, 2, 3)
SESSION_TIMEOUT_S = 9.0
"""broker.session.timeout.ms of a cluster that sets nothing"""
LEADER_LIMIT_S = 3.0
CONTROLLER_LIMIT_S = 5.0
PAUSE_LIMIT_S = SESSION_TIMEOUT_S + 2.0

Figures = dict[str, list[float]]
Break = Callable[["Chaos"], None]


class Chaos:
    """A cluster, its load, and what breaking it has shown so far."""

    def __init__(self, cluster: ClusterUp, load: Load, view: View, chance: random.Random) -> None:
        self.cluster = cluster
        self.load = load
        self.view = view
        self.chance = chance
        self.acked_s: Figures = {}
        """by the kind of break: seconds until every partition acked again"""
        self.read_s: Figures = {}

    def measure(self, kind: str, since_s: float, limit_s: float) -> None:
        acked_s, read_s = self.load.flowing(since_s)
        self.acked_s.setdefault(kind, []).append(acked_s)
        self.read_s.setdefault(kind, []).append(read_s)
        assert max(acked_s, read_s) < limit_s, (
            f"{kind}: acked after {acked_s} s, read after {read_s} s, not {limit_s} s"
        )

    def bring_back(self, node: int) -> None:
        self.cluster.bring_back(node)
        self.view.wait_in_sync(TOPIC, NODES)


def kill_a_leader(chaos: Chaos) -> None:
    """SIGKILL of a node that leads partitions and is not the active controller."""
    leading = _leading_besides_the_controller(chaos)
    if not leading:
        # Who outlived the last breaks leads everything, and may be the active controller.
        chaos.view.give_leaders_back()
        wait_until(lambda: bool(_leading_besides_the_controller(chaos)), "the active controller leads everything", 30)
        leading = _leading_besides_the_controller(chaos)
    node = chaos.chance.choice(leading)
    chaos.cluster.kill(node)
    chaos.measure("SIGKILL of a leader", time.monotonic(), LEADER_LIMIT_S)
    chaos.bring_back(node)


def _leading_besides_the_controller(chaos: Chaos) -> list[int]:
    return sorted(set(chaos.view.leaders(TOPIC).values()) - {chaos.view.controller()})


def kill_the_controller(chaos: Chaos) -> None:
    node = chaos.view.controller()
    chaos.cluster.kill(node)
    chaos.measure("SIGKILL of the active controller", time.monotonic(), CONTROLLER_LIMIT_S)
    chaos.bring_back(node)


def pause_a_node(chaos: Chaos) -> None:
    """SIGSTOP: its connections stay open, nobody is told. It wakes up as what it was, and must not act on it."""
    controller = chaos.view.controller()
    _pause(chaos, chaos.chance.choice([node for node in NODES if node != controller]), "SIGSTOP of a leader")


def pause_the_controller(chaos: Chaos) -> None:
    _pause(chaos, chaos.view.controller(), "SIGSTOP of the active controller")


def _pause(chaos: Chaos, node: int, kind: str) -> None:
    chaos.cluster.signal(node, signal.SIGSTOP)
    try:
        chaos.measure(kind, time.monotonic(), PAUSE_LIMIT_S)
    finally:
        chaos.cluster.signal(node, signal.SIGCONT)
    chaos.view.wait_in_sync(TOPIC, NODES)


def restart_one_after_the_other(chaos: Chaos) -> None:
    """Cleanly, with leaders moved away first: clients notice nothing but a reconnection."""
    reports, faults = len(chaos.load.book.failed_reports), len(chaos.load.book.poll_faults)
    for node in NODES:
        began = time.monotonic()
        chaos.cluster.stop_node(node)
        chaos.bring_back(node)
        chaos.measure("clean restart", began, 60)
    book = chaos.load.book
    assert book.failed_reports[reports:] == [], f"delivery reports failed: {book.failed_reports[reports:][:3]}"
    assert book.poll_faults[faults:] == [], f"poll told of {book.poll_faults[faults:][:3]}"


def kill_all(chaos: Chaos) -> None:
    """At once; they come back one by one, and nothing that was acked is missing."""
    for node in NODES:
        chaos.cluster.kill(node)
    began = time.monotonic()
    for node in NODES:
        chaos.cluster.bring_back_soon(node)
    chaos.measure("SIGKILL of all three, until all are back", began, 60)
    chaos.view.wait_in_sync(TOPIC, NODES)


BREAKS: dict[str, Break] = {
    "leader": kill_a_leader,
    "controller": kill_the_controller,
    "pause": pause_a_node,
    "pause-controller": pause_the_controller,
    "rolling": restart_one_after_the_other,
    "all": kill_all,
}


def run(breaks: int = 60, partitions: int = 6, seed: int = 1, kinds: list[str] | None = None) -> dict[str, object]:
    """`breaks` of all kinds, each kind as often as the others, in an order by chance."""
    chance = random.Random(seed)
    names = kinds or list(BREAKS)
    plan = [names[number % len(names)] for number in range(breaks)]
    chance.shuffle(plan)
    with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as scratch, ClusterUp(Path(scratch) / "data") as cluster:
        view = View(cluster.bootstrap, cluster.controllers())
        make_topic(view, partitions)
        with Load(cluster.bootstrap, TOPIC, partitions) as load:
            chaos = Chaos(cluster, load, view, chance)
            for name in plan:
                BREAKS[name](chaos)
    verdict = judged(load)
    return {
        "breaks": breaks,
        "ready_seconds": round(cluster.ready_s, 2),
        "acked_again_seconds": worst(chaos.acked_s),
        "read_again_seconds": worst(chaos.read_s),
        "failed_delivery_reports": len(load.book.failed_reports),
        "faults_from_poll": len(load.book.poll_faults),
        **told(verdict),
    }


def make_topic(view: View, partitions: int) -> None:
    view.admin.create_topics([NewTopic(TOPIC, partitions, 3)])[TOPIC].result(30)
    view.wait_in_sync(TOPIC, NODES)


def judged(load: Load) -> Verdict:
    verdict = check(load.book.history)
    assert verdict.valid, f"the history has anomalies: {verdict}"
    return verdict


def told(verdict: Verdict) -> dict[str, object]:
    return {
        "operations": sum(verdict.shape.values()),
        "shape": dict(sorted(verdict.shape.items())),
        "records_read": verdict.records_read,
        "anomalies": verdict.counts,
        "allowed": verdict.allowed,
    }


def worst(figures: Figures) -> dict[str, dict[str, float]]:
    return {
        kind: {"times": len(values), "median": sorted(values)[len(values) // 2], "worst": max(values)}
        for kind, values in figures.items()
    }
