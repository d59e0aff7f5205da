"""Consume-transform-produce loops on three brokers, copied exactly once while brokers and the loops are killed.

A topic is fed with numbers; two processes share its partitions as a group and copy it, each batch and its offsets in
one transaction. Killed are leaders, the coordinators of the group and of the transactions, the active controller, and
the loops themselves; a loop is also paused until another has its partitions, and wakes up as what it was. A reader of
what is committed sees every number once, in order. With librdkafka and with Apache's client, in both group protocols.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import NewTopic

from penstock.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.core.groups.partitions import partition_for
from proofs.client_processes import ClientProcesses, java_program
from proofs.cluster_chaos import NODES, Figures, worst
from proofs.cluster_up import ClusterUp
from proofs.cluster_view import View, wait_until
from proofs.copy_loop import FENCED, SESSION_TIMEOUT_MS, STUCK
from proofs.copy_watch import Copies, Feeder, judge

JAVA_LOOP = Path(__file__).parent / "java" / "CopyLoop.java"
LOOPS = 2
AGAIN_LIMIT_S = 90.0
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}
CLIENTS = [("confluent-kafka", "classic"), ("confluent-kafka", "consumer"), ("java", "classic"), ("java", "consumer")]


class Copying:
    """A topic that is fed, the loops that copy it, and how long each break kept them from it."""

    def __init__(self, cluster: ClusterUp, view: View, name: str, partitions: int, chance: random.Random) -> None:
        self.cluster = cluster
        self.view = view
        self.chance = chance
        self.source, self.target, self.group = f"{name}-source", f"{name}-target", f"{name}-group"
        self.ids = [f"{name}-{at}" for at in range(LOOPS)]
        self.partitions = partitions
        self.seconds: Figures = {}
        """by the kind of break: until numbers that were fed after it had come out of every partition"""
        self.loops: ClientProcesses
        self._feeder: Feeder
        self._copies: Copies

    def run(self, command: list[str], protocol: str, breaks: list[str], scratch: Path, debug: str) -> dict[str, object]:
        for topic in (self.source, self.target):
            self.view.admin.create_topics([NewTopic(topic, self.partitions, 3)])[topic].result(30)
            self.view.wait_in_sync(topic, NODES)
        bootstrap = self.cluster.bootstrap
        self._feeder = Feeder(bootstrap, self.source, self.partitions)
        self._copies = Copies(bootstrap, self.target, self.partitions)
        told = [bootstrap, self.group, protocol, self.source, self.target]
        commands = [[*command, *told, one, *([debug] if debug else [])] for one in self.ids]
        log = scratch / f"{self.group}.log"
        with self._feeder, self._copies, ClientProcesses(commands, log) as self.loops:
            self.measure("the beginning", time.monotonic())
            for name in breaks:
                BREAKS[name](self)
            rounds = self._feeder.finish()
            self._await(rounds - 1, "not everything was copied")
            self._copies.finish()
        judge(bootstrap, self.target, self.partitions, rounds)
        return {
            "records": rounds * self.partitions,
            "copied_again_seconds": worst(self.seconds),
            "loops_that_were_fenced": self.loops.ended[FENCED],
            "loops_in_a_call_that_did_not_return": self.loops.ended[STUCK],
            "loops_that_gave_up_otherwise": self.loops.ended.total()
            - self.loops.ended[FENCED]
            - self.loops.ended[STUCK],
        }

    def measure(self, kind: str, since_s: float) -> None:
        self._await(self._feeder.rounds, f"{kind}: nothing is copied")
        self.seconds.setdefault(kind, []).append(round(time.monotonic() - since_s, 2))

    def _await(self, rounds: int, otherwise: str) -> None:
        def is_past() -> bool:
            self.loops.tend()
            return self._copies.is_past(rounds)

        try:
            wait_until(is_past, otherwise, AGAIN_LIMIT_S)
        except AssertionError as fault:
            raise AssertionError(f"{fault}; the loops said: {self.loops.said()}") from None

    def kill(self, kind: str, node: int) -> None:
        self.cluster.kill(node)
        self.measure(kind, time.monotonic())
        self.cluster.bring_back(node)
        for topic in (self.source, self.target, OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            self.view.wait_in_sync(topic, NODES)

    def coordinator(self, topic: str, key: str) -> int:
        leaders = self.view.leaders(topic)
        return leaders[partition_for(key, len(leaders))]


def kill_a_leader(copying: Copying) -> None:
    topic = copying.chance.choice([copying.source, copying.target])
    copying.kill("SIGKILL of a leader", copying.view.leaders(topic)[copying.chance.randrange(copying.partitions)])


def kill_a_transaction_coordinator(copying: Copying) -> None:
    node = copying.coordinator(TRANSACTIONS_TOPIC, copying.chance.choice(copying.ids))
    copying.kill("SIGKILL of a transaction's coordinator", node)


def kill_the_group_coordinator(copying: Copying) -> None:
    copying.kill("SIGKILL of the group's coordinator", copying.coordinator(OFFSETS_TOPIC, copying.group))


def kill_the_controller(copying: Copying) -> None:
    copying.kill("SIGKILL of the active controller", copying.view.controller())


def kill_a_loop(copying: Copying) -> None:
    copying.loops.kill(copying.chance.randrange(LOOPS))
    copying.measure("SIGKILL of a loop", time.monotonic())


def pause_a_loop(copying: Copying) -> None:
    """Until the other has its partitions; it wakes up in a transaction that was ended for it, as a member no more."""
    at = copying.chance.randrange(LOOPS)
    copying.loops.pause(at)
    try:
        copying.measure("SIGSTOP of a loop", time.monotonic())
    finally:
        copying.loops.resume(at)
    copying.measure("SIGCONT of a loop", time.monotonic())


BREAKS: dict[str, Callable[[Copying], None]] = {
    "loop": kill_a_loop,
    "transaction coordinator": kill_a_transaction_coordinator,
    "group coordinator": kill_the_group_coordinator,
    "leader": kill_a_leader,
    "controller": kill_the_controller,
    "pause": pause_a_loop,
}


def run(
    breaks: int = 12,
    partitions: int = 6,
    seed: int = 1,
    clients: list[tuple[str, str]] | None = None,
    kinds: list[str] | None = None,
    debug: str = "",
) -> dict[str, object]:
    """`breaks` for each of the clients, each kind as often as the others, in an order by chance."""
    chance, names = random.Random(seed), kinds or list(BREAKS)
    figures: dict[str, object] = {"breaks": breaks * len(clients or CLIENTS), "load_before": os.getloadavg()}
    with tempfile.TemporaryDirectory(prefix="penstock-copy-") as place:
        scratch = Path(place)
        with ClusterUp(scratch / "data", settings=SETTINGS) as cluster:
            view = View(cluster.bootstrap, cluster.controllers())
            for library, protocol in clients or CLIENTS:
                plan = [names[number % len(names)] for number in range(breaks)]
                chance.shuffle(plan)
                copying = Copying(cluster, view, f"{library}-{protocol}", partitions, chance)
                command = _command(library, scratch)
                figures[f"{library}, {protocol}"] = copying.run(command, protocol, plan, scratch, debug)
    return {**figures, "load_after": os.getloadavg()}


def _command(library: str, scratch: Path) -> list[str]:
    if library == "java":
        return java_program(JAVA_LOOP, scratch)
    return [sys.executable, "-m", "proofs.copy_loop"]
