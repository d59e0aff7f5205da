"""A share group on three brokers whose leaders, coordinators and workers are killed: every record is given to a worker,
and none is given out again once a worker was told that its acknowledgement is kept.

The workers are processes on librdkafka's share consumer. What is given out twice before that is counted: a worker that
is killed, or never told, has perhaps done its work, and another has to do it again.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from penstock.base.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from penstock.core.groups.partitions import partition_for
from proofs.client_processes import ClientProcesses
from proofs.cluster_chaos import NODES, Figures, worst
from proofs.cluster_up import ClusterUp
from proofs.cluster_view import View, wait_until
from proofs.copy_watch import Feeder
from proofs.share_journal import ShareJournal

TOPIC, GROUP = "jobs", "workers"
WORKERS = 3
AGAIN_LIMIT_S = 90.0
LOCK_S = 4
BUFFERED_S = LOCK_S + 1.0
"""so long a client may hand out what it had fetched: when the lock is over, so is its right to it"""
SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(1000 * LOCK_S),
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.delivery.count.limit": "10",
    "offsets.topic.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
}


class Sharing:
    """A topic of numbered jobs, the workers, and how long each break kept jobs from being done."""

    def __init__(self, cluster: ClusterUp, view: View, partitions: int, chance: random.Random, scratch: Path) -> None:
        self.cluster = cluster
        self.view = view
        self.chance = chance
        self.partitions = partitions
        self.seconds: Figures = {}
        """by the kind of break: until jobs that came after it were given out, of every partition"""
        self.workers: ClientProcesses
        self._scratch = scratch
        self._journal = ShareJournal(scratch)
        self._feeder = Feeder(cluster.bootstrap, TOPIC, partitions)

    def run(self, breaks: list[str]) -> dict[str, object]:
        bootstrap, loop = self.cluster.bootstrap, [sys.executable, "-m", "proofs.share_loop"]
        commands = [[*loop, bootstrap, GROUP, TOPIC, str(self._scratch / f"{at}.journal")] for at in range(WORKERS)]
        with self._feeder, ClientProcesses(commands, self._scratch / "workers.log") as self.workers:
            self.measure("the beginning", time.monotonic())
            for name in breaks:
                BREAKS[name](self)
            rounds = self._feeder.finish()
            self._await(lambda: self._journal.has_all(self.partitions, rounds), "not every job was given out")
            time.sleep(LOCK_S + 2)  # what is still locked is given out again, and what is done must not be
        return self._judged(rounds)

    def measure(self, kind: str, since_s: float) -> None:
        rounds = self._feeder.rounds
        self._await(lambda: self._journal.is_past(self.partitions, rounds), f"{kind}: no job is given out")
        self.seconds.setdefault(kind, []).append(round(time.monotonic() - since_s, 2))

    def kill(self, kind: str, node: int) -> None:
        self.cluster.kill(node)
        self.measure(kind, time.monotonic())
        self.cluster.bring_back(node)
        for topic in (TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC):
            self.view.wait_in_sync(topic, NODES)

    def coordinator(self, topic: str, key: str) -> int:
        leaders = self.view.leaders(topic)
        return leaders[partition_for(key, len(leaders))]

    def _await(self, condition: Callable[[], bool], otherwise: str) -> None:
        def look() -> bool:
            self.workers.tend()
            self._journal.follow()
            return condition()

        try:
            wait_until(look, otherwise, AGAIN_LIMIT_S)
        except AssertionError as fault:
            raise AssertionError(f"{fault}; the workers said: {self.workers.said()}") from None

    def _judged(self, rounds: int) -> dict[str, object]:
        journal = self._journal
        journal.follow()
        missing = {
            partition: sorted(set(range(rounds)) - journal.numbers[partition])[:5]
            for partition in range(self.partitions)
            if len(journal.numbers[partition]) < rounds
        }
        assert not missing, f"never given to a worker: {missing}"
        assert not journal.confirmed_twice(), f"confirmed to two workers: {journal.confirmed_twice()[:5]}"
        late = journal.late_s()
        again = [place for place, seconds in late.items() if seconds > BUFFERED_S]
        assert not again, f"given out again though confirmed: {again[:5]}"
        return {
            "records": rounds * self.partitions,
            "confirmed": len(journal.done_ns),
            "given_out_more_than_once": journal.given_again(),
            "handed_out_of_a_clients_buffer_after_another_was_confirmed": len(late),
            "given_out_again_seconds": worst(self.seconds),
            "workers_that_ended_by_themselves": self.workers.ended.total(),
        }


def kill_a_leader(sharing: Sharing) -> None:
    node = sharing.view.leaders(TOPIC)[sharing.chance.randrange(sharing.partitions)]
    sharing.kill("SIGKILL of a leader", node)


def kill_a_share_coordinator(sharing: Sharing) -> None:
    described = sharing.view.admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(30)
    key = f"{GROUP}:{described.topic_id}:{sharing.chance.randrange(sharing.partitions)}"
    sharing.kill("SIGKILL of the keeper of a partition's state", sharing.coordinator(SHARE_STATE_TOPIC, key))


def kill_the_group_coordinator(sharing: Sharing) -> None:
    sharing.kill("SIGKILL of the group's coordinator", sharing.coordinator(OFFSETS_TOPIC, GROUP))


def kill_a_worker(sharing: Sharing) -> None:
    sharing.workers.kill(sharing.chance.randrange(WORKERS))
    sharing.measure("SIGKILL of a worker", time.monotonic())


BREAKS: dict[str, Callable[[Sharing], None]] = {
    "worker": kill_a_worker,
    "leader": kill_a_leader,
    "share coordinator": kill_a_share_coordinator,
    "group coordinator": kill_the_group_coordinator,
}


def run(breaks: int = 32, partitions: int = 3, seed: int = 1, kinds: list[str] | None = None) -> dict[str, object]:
    """`breaks` of all kinds, each as often as the others, in an order by chance."""
    chance, names = random.Random(seed), kinds or list(BREAKS)
    plan = [names[number % len(names)] for number in range(breaks)]
    chance.shuffle(plan)
    figures: dict[str, object] = {"breaks": breaks, "load_before": os.getloadavg()}
    with tempfile.TemporaryDirectory(prefix="penstock-share-") as place:
        scratch = Path(place)
        with ClusterUp(scratch / "data", settings=SETTINGS) as cluster:
            view = View(cluster.bootstrap, cluster.controllers())
            prepare(view, partitions)
            figures |= Sharing(cluster, view, partitions, chance, scratch).run(plan)
    return {**figures, "load_after": os.getloadavg()}


def prepare(view: View, partitions: int) -> None:
    view.admin.create_topics([NewTopic(TOPIC, partitions, 3)])[TOPIC].result(30)
    view.wait_in_sync(TOPIC, NODES)
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=[entry])
    for future in view.admin.incremental_alter_configs([resource]).values():
        future.result(30)
