"""The brokers of a run: their hosts, disks and clocks, which outlive the processes that run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from random import Random
from typing import NamedTuple

from penstock.base.ids import id_text
from penstock.broker.broker import Broker
from penstock.broker.config import BrokerConfig
from penstock.sim.disk import PowerLoss, SimDisk
from penstock.sim.loop import SimLoop
from penstock.sim.network import Network
from penstock.sim.process import Process
from penstock.sim.world import SimClock, SimWorld

CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
_JOB_BEGIN_US = 100
_SUPERVISOR_US = 1_000_000
"""a process that has ended is started again after so long, if nobody did before"""


class Ended(NamedTuple):
    """A broker's process that ended by itself."""

    node_id: int
    fault: BaseException


class Node:
    """One host: what is on its disk stays when the process goes."""

    def __init__(self, node_id: int, rack: str, disk: SimDisk, clock: SimClock) -> None:
        self.id = node_id
        self.rack = rack
        self.host = f"broker-{node_id}"
        self.disk = disk
        self.clock = clock
        self.process: Process | None = None
        self.broker: Broker | None = None
        self.ready = False
        """clients are served"""
        self.stopping = False
        self.starts = 0
        self.world: SimWorld | None = None
        self.suspect = False
        """its page cache may hold what the disk does not: a failed sync. It needs a power cycle"""
        self.lost = False
        """for good, with its rack"""
        self.has_other_disk = False
        """than the one with which the cluster began"""

    @property
    def up(self) -> bool:
        return self.process is not None


class SimCluster:
    def __init__(
        self,
        loop: SimLoop,
        network: Network,
        seed: int,
        nodes: int,
        configs: Mapping[str, str],
        job_us: int,
        racks: int = 0,
        *,
        dynamic_voters: bool = False,
    ) -> None:
        """`racks`: in which the brokers stand, by turns; 0: each in one of its own. `dynamic_voters`: a voter is known
        by its directory too (KIP-853), so that one with another disk is another."""
        self.loop = loop
        self.network = network
        self.job_us = job_us
        self.ended: list[Ended] = []
        """processes that ended without being told to"""
        self.opened: Callable[[Node], None] = lambda node: None
        """called when a broker has read its disk and serves"""
        self.losing: Callable[[Node, bool], None] = lambda node, lost_power: None
        """called when a host's process or power is about to go, with whether its page cache goes too"""
        self.wiped: Callable[[Node], None] = lambda node: None
        """called when a host has lost its disk"""
        self._dead: list[Process] = []
        self._dynamic_voters = dynamic_voters
        self._seed = seed
        self._configs = configs
        self.nodes = [
            Node(number, rack_name(number, racks), SimDisk(Random(f"disk {seed} {number}")), SimClock(loop))
            for number in range(1, nodes + 1)
        ]
        network.racks.update({node.host: node.rack for node in self.nodes})

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{node.host}:{CLIENT_PORT}" for node in self.nodes)

    @property
    def all_ready(self) -> bool:
        """Those that are not lost for good."""
        return all(node.ready or node.lost for node in self.nodes)

    def start(self, node: Node) -> None:
        """Not where a sync failed: what it read then would be in a page cache that no disk has. First comes a cycle."""
        if node.process is not None or node.lost or node.suspect:
            return
        node.starts += 1
        self.network.power_on(node.host)
        process = Process(node.host, node.host, hash_seed(self._seed, node.id, node.starts))
        node.process, node.broker, node.ready, node.stopping = process, None, False, False
        node.disk.stopped = lambda: self._lost_power(node, process)
        world = SimWorld(self.loop, self.network, process, node.disk, node.clock)
        world.job_begin_us, world.job_last_us = _JOB_BEGIN_US, self.job_us
        node.world = world
        self.loop.spawn(process, self._serve(node, process, world))

    def stop(self, node: Node) -> None:
        """Cleanly, as SIGTERM asks for."""
        if node.process is None or not node.ready or node.stopping:
            return
        node.stopping = True
        self.loop.spawn(node.process, self._stop(node, node.process))

    def kill(self, node: Node) -> None:
        """SIGKILL: the process is gone, what it wrote is in the page cache."""
        if node.process is not None:
            self.losing(node, node.suspect)
            self.network.kill(node.process)
            self._forget(node)

    def power_loss(self, node: Node) -> None:
        """The host is dark: what was not synced may be gone."""
        self.losing(node, True)
        if node.process is not None:
            self.network.power_off(node.process)
            self._forget(node)
        node.disk.crash()
        node.suspect = False

    def lose(self, node: Node) -> None:
        """For good: it goes dark, and nobody ever switches it on again."""
        node.lost = True
        self.power_loss(node)

    def lose_disk(self, node: Node) -> None:
        """The host goes dark, and comes back with an empty disk."""
        self.power_loss(node)
        node.disk.wipe()
        node.has_other_disk = True
        self.wiped(node)

    def pause(self, node: Node) -> None:
        if node.process is not None:
            node.process.paused = True

    def resume(self, node: Node) -> None:
        if node.process is not None and node.process.paused:
            self.loop.resume(node.process)

    def slow(self, node: Node, job_us: int) -> None:
        """What a job takes there from now on."""
        if node.world is not None:
            node.world.set_job_us(job_us)

    async def _serve(self, node: Node, process: Process, world: SimWorld) -> None:
        broker = Broker(BrokerConfig(self._config(node)), world)
        node.broker = broker
        self.loop.spawn(process, self._watch(node, process, broker))
        try:
            await broker.start()
        except (PowerLoss, Exception) as fault:
            self._end(node, process, fault)
            return
        node.ready = True
        self.opened(node)

    async def _watch(self, node: Node, process: Process, broker: Broker) -> None:
        self._end(node, process, await broker.lost())

    async def _stop(self, node: Node, process: Process) -> None:
        assert node.broker is not None
        try:
            await node.broker.stop()
        except Exception as fault:
            self._end(node, process, fault)
            return
        if node.process is process:
            self.kill(node)
            self.loop.after(_SUPERVISOR_US, None, b"restart", self.start, node)

    def _end(self, node: Node, process: Process, fault: BaseException) -> None:
        if node.process is process and process.alive:
            self.ended.append(Ended(node.id, fault))
            self.kill(node)
            if not node.suspect:
                self.loop.after(_SUPERVISOR_US, None, b"restart", self.start, node)

    def _lost_power(self, node: Node, process: Process) -> None:
        """The disk stopped in the middle of an operation."""
        self.losing(node, True)
        if node.process is process:
            self.network.power_off(process)
            self._forget(node)
        self.loop.after(1, None, b"power loss", node.disk.crash)

    def bury(self) -> None:
        """Let go of what brokers held that are gone."""
        dead, self._dead = self._dead, []
        with ExitStack() as stack:
            for node in self.nodes:
                stack.enter_context(node.disk.out_of_reach())
            self.loop.bury(dead)

    def _forget(self, node: Node) -> None:
        assert node.process is not None
        node.process.pinned.append(node.broker)
        node.process.die()
        self._dead.append(node.process)
        node.process, node.broker, node.ready = None, None, False

    def _config(self, node: Node) -> dict[str, str]:
        voters = ",".join(f"{one.id}@{one.host}:{CONTROLLER_PORT}" for one in self.nodes)
        own = {
            "process.roles": "broker,controller",
            "node.id": str(node.id),
            "broker.rack": node.rack,
            "listeners": f"PLAINTEXT://{node.host}:{CLIENT_PORT},CONTROLLER://{node.host}:{CONTROLLER_PORT}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "/data",
        }
        if len(self.nodes) > 1:
            own["penstock.cluster.id"] = "simulatedclusterAAAAAA"
            own |= self._dynamic(node) if self._dynamic_voters else {"controller.quorum.voters": voters}
        return own | dict(self._configs)

    def _dynamic(self, node: Node) -> dict[str, str]:
        """Who has another disk is told where the others are, and asks to vote again by itself."""
        places = {one.id: f"{one.host}:{CONTROLLER_PORT}" for one in self.nodes}
        first = ",".join(f"{id_}@{place}:{id_text(bytes([id_]) * 16)}" for id_, place in places.items())
        begun = {} if node.has_other_disk else {"penstock.initial.controllers": first}
        return begun | {
            "controller.quorum.bootstrap.servers": ",".join(places.values()),
            "controller.quorum.auto.join.enable": "true",
        }


def rack_name(number: int, racks: int) -> str:
    """The rack of the n-th host, from 1."""
    return f"rack-{(number - 1) % racks + 1 if racks else number}"


def hash_seed(*parts: int) -> int:
    """A seed out of numbers, the same under every PYTHONHASHSEED."""
    seed = 0
    for part in parts:
        seed = (seed * 1_000_003 + part) % (1 << 61)
    return seed
