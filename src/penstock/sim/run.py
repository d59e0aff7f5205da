"""One run by its seed: brokers and clients under faults, then a healed cluster that must converge, then the verdict.

1. Set-up: the brokers start and the topic is made, undisturbed.
2. Safety: clients work while faults strike, for most of the events. Where there are racks, one is lost half-way.
3. Liveness: every fault is mended; producers finish, readers read to the end (L1-L6).
4. The verdict: what the invariants found on the way, exceptions that nobody expected, and the clients' history.
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from penstock.base.errors import ErrorCode, KafkaError
from penstock.sim.check.checker import check
from penstock.sim.cluster import SimCluster
from penstock.sim.disk import PowerLoss
from penstock.sim.faults import Nemesis
from penstock.sim.invariants import resting
from penstock.sim.invariants.ghost import Violation
from penstock.sim.invariants.watch import Watch
from penstock.sim.loop import new_sim_loop
from penstock.sim.nearness import Nearness
from penstock.sim.network import Network
from penstock.sim.options import Options, draw, draw_racks
from penstock.sim.process import Process
from penstock.sim.sharing import GROUP as SHARE_GROUP
from penstock.sim.survival import is_whole
from penstock.sim.transacting import number_of
from penstock.sim.workload import TOPIC, Workload

_SETUP_US = 60_000_000
_SAFETY_US = 3_600_000_000
_LIVENESS_US = 120_000_000
"""virtual time within which a healed cluster converges"""
_LOOK_EVERY = 50
"""events between two looks at whether it has come to rest"""

_CLOSEST = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

_INVARIANTS = {
    "unseen": "L6",
    "torn-transaction": "T1",
    "copy-lost": "E1",
    "copy-duplicate": "E1",
    "copy-reordered": "E1",
    "copy-phantom": "E1",
    "never-taken": "Q5",
}
"""anomalies that have a number; the others are the history's"""
_SCRUBBING = {"penstock.scrub.interval.ms": "200", "penstock.scrub.rest.ms": "2000"}
"""so that a run sees several passes"""

CONFIGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.retention.check.interval.ms": "2000",
    "transaction.state.log.num.partitions": "2",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "group.initial.rebalance.delay.ms": "100",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.initialize.retry.interval.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.prune.interval.ms": "2000",
    "share.coordinator.cold.partition.snapshot.interval.ms": "3000",
    "share.coordinator.snapshot.update.records.per.snapshot": "20",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "log.segment.delete.delay.ms": "500",
    "auto.create.topics.enable": "false",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "metadata.max.retention.bytes": "8000",
    "replica.lag.time.max.ms": "3000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@dataclass(slots=True)
class Report:
    options: Options
    violations: list[Violation] = field(default_factory=list)
    injected: dict[str, int] = field(default_factory=dict)
    events: int = 0
    virtual_s: float = 0.0
    digest: str = ""
    acked: int = 0
    read: int = 0
    near: int = 0
    """answers with records that came from the reader's own rack, in a run with racks"""
    far: int = 0
    shape: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.violations


class Run:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.loop = new_sim_loop()
        self.network = Network(self.loop, Random(f"network {options.seed}"))
        self.network.weather = options.weather
        copies = str(options.copies)
        configs = CONFIGS | {
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": str(options.min_insync),
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": str(options.min_insync),
            "default.replication.factor": copies,
        }
        if "bit-flip" in options.faults:
            configs |= _SCRUBBING
        if "lost-disk" in options.faults:
            # With one copy in sync enough, a broker that has lost its disk may come to lead before anybody knows:
            # it was in the ISR, and the other one that is, and has everything, is cut off (KIP-966 is for two).
            configs["min.insync.replicas"] = str(options.min_insync)
        if options.racks:
            configs["replica.selector.class"] = _CLOSEST
        self.cluster = SimCluster(
            self.loop,
            self.network,
            options.seed,
            options.nodes,
            configs,
            options.job_us,
            options.racks,
            dynamic_voters="lost-disk" in options.faults,
        )
        self.workload = Workload(self.cluster, options)
        self.nemesis = Nemesis(self.cluster, options, self.workload.crash_one, self.workload.hosts, TOPIC)
        self.violations: list[Violation] = []
        self._shape: dict[str, int] = {}
        self._read = 0
        self.watch = Watch(self.cluster, options.flush, self._violated)
        racks = {node.id: node.rack for node in self.cluster.nodes}
        self.nearness = Nearness(racks, self.network.racks, TOPIC, self._violated)
        self._nodes = {node.host: node for node in self.cluster.nodes}
        self.loop.observer = self._observe
        self.loop.upkeep = self.cluster.bury
        self.cluster.opened = self.watch.opened
        self.cluster.losing = self.watch.gone
        self.cluster.wiped = self.watch.wiped
        self.workload.on_ack = self._acked
        self.workload.on_read = self.watch.consumed
        self.workload.on_commit = self.watch.offset_acked
        self.workload.on_owned = self.watch.owned
        self.workload.on_accepted = self.watch.shares.accepted
        if options.racks:
            self.workload.on_source = self.nearness.read

    def go(self) -> Report:
        with quiet_garbage(), _journal(self), self._listening(), contextlib.closing(self.loop):
            for node in self.cluster.nodes:
                self.cluster.start(node)
            self.workload.setup()
            self._until(lambda: self.workload.ready and self.cluster.all_ready, _SETUP_US, "L1", "the cluster is ready")
            if not self.violations:
                self._safety()
                self._liveness()
            self._judge()
            return self._report()

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        with self.watch.listening(), self.nearness.listening() if self.options.racks else contextlib.nullcontext():
            yield

    def _safety(self) -> None:
        self.workload.begin()
        self.nemesis.begin()
        until_us = self.loop.now_us + _SAFETY_US
        if self.options.racks:
            self._run_to(self.options.events // 2, until_us)
            self._lose_rack()
        self._run_to(self.options.events * 9 // 10, until_us)

    def _lose_rack(self) -> None:
        """While all others stand; they may crash again once they have taken over."""
        whole = partial(is_whole, self.cluster.nodes)
        self.nemesis.held = True
        self._settle(whole)
        rack = self.nemesis.lose_rack()
        if rack:
            self.workload.lose_rack(rack)
            self._settle(whole)
        self.nemesis.held = False

    def _settle(self, done: Callable[[], bool]) -> None:
        until_us = self.loop.now_us + _SETUP_US
        self.loop.run_while(lambda: not self.violations and self.loop.now_us < until_us and not done())

    def _run_to(self, events: int, until_us: int) -> None:
        self.loop.run_while(lambda: self.loop.events < events and self.loop.now_us < until_us and not self.violations)

    def _liveness(self) -> None:
        if self.violations:
            return
        self.nemesis.stop()
        for node in resting.failed(self.cluster):
            self.cluster.kill(node)
            self.cluster.start(node)
        self.workload.finish()
        self._until(lambda: self.cluster.all_ready, _LIVENESS_US, "L1", "every broker is back")
        self._until(lambda: self.workload.done, _LIVENESS_US, "L2", "every client has finished, having read to the end")
        if not self.workload.done and self.violations:
            self._violated("L2", f"unfinished: {self.workload.unfinished}")
            if hanging := resting.undecided(self.cluster):
                self._violated("T4", hanging)
        self._until(lambda: not self.nemesis.is_damaged, _LIVENESS_US, "S5", "what rotted is repaired")
        self._until_quiet("L3", resting.unsettled)
        self._until_quiet("L5", resting.unstable)
        self._until_quiet("T4", resting.undecided)
        if not self.violations:
            self.watch.at_rest()
            for fault in self._not_handed_out():
                self._violated("Q5", fault)

    def _not_handed_out(self) -> Iterator[str]:
        acked = ((f"{TOPIC}-{partition}", offset) for partition, offset in self.workload.acked)
        return self.watch.shares.missing(SHARE_GROUP, acked if self.options.sharers else ())

    def _until_quiet(self, invariant: str, fault: Callable[[SimCluster], str]) -> None:
        """Looked at now and then: to look costs more than an event."""
        self._until(
            lambda: self.loop.events % _LOOK_EVERY == 0 and not fault(self.cluster), _LIVENESS_US, invariant, ""
        )
        if self.violations and self.violations[-1].invariant == invariant:
            self._violated(invariant, fault(self.cluster))

    def _until(self, done: Callable[[], bool], within_us: int, invariant: str, what: str) -> None:
        if self.violations:
            return
        until_us = self.loop.now_us + within_us
        self.loop.run_while(lambda: not done() and self.loop.now_us < until_us and not self.violations)
        if not done() and not self.violations:
            self._violated(invariant, f"not so within {within_us // 1_000_000} s: {what}")

    def _judge(self) -> None:
        for fault in self.loop.faults:
            self._violated("bug", f"an exception that nobody took: {fault}")
        for node_id, error in self.cluster.ended:
            if not _is_of_the_disk(error):
                self._violated("bug", f"broker {node_id} ended: {error!r}")
        history = self.workload.history
        history.abandon(self.loop.now_us * 1000)
        partitions = range(self.options.partitions if self.options.sharers else 0)
        worn = {(int(name.rpartition("-")[2]), offset) for _, name, offset in self.watch.shares.worn}
        verdict = check(
            history,
            read_to_end=not self.violations,
            copies=self.workload.copies,
            made_of=number_of,
            shared=partitions,
            given_up=worn,
        )
        for anomaly in verdict.anomalies:
            self._violated(_INVARIANTS.get(anomaly.name, "history"), str(anomaly))
        self._shape = verdict.shape
        self._read = verdict.records_read

    def _report(self) -> Report:
        injected = dict(sorted(self.nemesis.struck.items()))
        return Report(
            self.options,
            self.violations,
            injected,
            self.loop.events,
            self.loop.time(),
            self.loop.digest,
            len(self.workload.acked),
            self._read,
            self.nearness.near,
            self.nearness.far,
            self._shape,
        )

    def _observe(self, process: Process | None) -> None:
        if process is not None:
            node = self._nodes.get(process.host)
            if node is not None and node.process is process:
                self.watch.touched(node)

    def _acked(self, partition: int, offset: int, value: int) -> None:
        self.watch.ghost.acked(f"{TOPIC}-{partition}", offset)

    def _violated(self, invariant: str, text: str) -> None:
        self.violations.append(Violation(invariant, text, self.loop.now_us, self.loop.events))

    def failed_request(self, text: str) -> None:
        self._violated("bug", text)


def simulate_seed(seed: int, nodes: int = 3, events: int = 10_000) -> Report:
    return Run(draw(seed, nodes, events)).go()


def simulate_racks(seed: int, nodes: int = 3, events: int = 10_000, *, racks: int = 3, latency_ms: int = 20) -> Report:
    """`latency_ms`: one way, between any two racks. One of them is lost for good half-way."""
    return Run(draw_racks(seed, nodes, events, racks, latency_ms)).go()


@contextlib.contextmanager
def quiet_garbage() -> Iterator[None]:
    """Cycles are collected between runs, not in the middle of one, where a finalizer could take part in it."""
    gc.collect()
    gc.freeze()  # what is there already is not looked at when the dead of a run are buried
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()


def _is_of_the_disk(fault: BaseException) -> bool:
    """What a broker may say, or end with, when its disk fails."""
    if isinstance(fault, KafkaError):
        return fault.code == ErrorCode.KAFKA_STORAGE_ERROR
    return isinstance(fault, OSError | PowerLoss)


class _Ear(logging.Handler):
    """Hears of requests that failed by a bug: the broker answers them, so nobody else would."""

    def __init__(self, run: Run) -> None:
        super().__init__(logging.ERROR)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        fault = record.exc_info[1] if record.exc_info else None
        if fault is not None and not _is_of_the_disk(fault):
            self._run.failed_request(f"{record.getMessage()}: {fault!r}")


@contextlib.contextmanager
def _journal(run: Run) -> Iterator[None]:
    logger = logging.getLogger("penstock")
    before = (logger.handlers[:], logger.propagate, logger.level)
    logger.handlers, logger.propagate = [_Ear(run)], False
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before[0], before[1]
        logger.setLevel(before[2])
