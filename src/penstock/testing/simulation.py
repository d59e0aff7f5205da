"""`simulate`: your own asyncio code against simulated brokers, on virtual time, under faults, by a seed.

The brokers are the real ones. What runs is decided by the seed alone: a failure is repeated by repeating its seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.sim.cluster import Node, SimCluster, hash_seed
from penstock.sim.faults import Nemesis
from penstock.sim.loop import new_sim_loop
from penstock.sim.network import Network
from penstock.sim.options import FAULTS, draw
from penstock.sim.process import Process
from penstock.sim.run import CONFIGS, quiet_garbage
from penstock.sim.world import SimClock
from penstock.wire import admin
from penstock.wire.aio import Client

T = TypeVar("T")

_READY_US = 60_000_000


class Simulated(NamedTuple, Generic[T]):
    """What a simulated scenario came to."""

    result: T
    seed: int
    digest: str
    """equal for equal runs"""
    events: int
    seconds: float
    """of virtual time"""
    injected: dict[str, int]
    """how often each kind of fault struck"""


class Simulation:
    """Handed to the scenario: the cluster, and what may be done to it. Brokers are numbered from 1."""

    def __init__(self, seed: int, nodes: int, config: Mapping[str, str], faults: Sequence[str]) -> None:
        unknown = [kind for kind in faults if kind not in FAULTS]
        if unknown:
            raise ValueError(f"there is no fault {unknown[0]!r}; there are {', '.join(FAULTS)}")
        self.seed = seed
        self._options = dataclasses.replace(draw(seed, nodes), faults=tuple(faults), flush=True)
        self._loop = new_sim_loop()
        self.network = Network(self._loop, Random(f"network {seed}"))
        copies = str(self._options.copies)
        configs = CONFIGS | {"offsets.topic.replication.factor": copies, "default.replication.factor": copies}
        defaults = {"min.insync.replicas": str(self._options.min_insync), "log.flush.interval.messages": "1"}
        self.cluster = SimCluster(self._loop, self.network, seed, nodes, configs | defaults | dict(config), 2_000)
        self.nemesis = Nemesis(self.cluster, self._options, lambda: None, ["application"])
        self._clock = SimClock(self._loop)
        self._process = self._new_process("application")
        self._others: dict[str, Process] = {}

    @property
    def bootstrap_servers(self) -> str:
        return self.cluster.bootstrap

    @property
    def seconds(self) -> float:
        """Of virtual time since the beginning."""
        return self._loop.time()

    def client(self, name: str = "application") -> Client:
        """A client of our own (`penstock.wire.aio`), for its Producer, Fetcher and GroupConsumer."""
        process = self._others.get(name, self._process)
        return Client(
            self.bootstrap_servers, client_id=name, chance=process.random.randrange, wall_ms=self._clock.wall_ms
        )

    async def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        topic = admin.NewTopic(name, partitions, self._options.copies, dict(configs or {}))
        async with self.client() as client:
            await client.run(admin.create_topics(client.cluster, [topic]))

    def start_process(self, name: str, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """Run `work` as a process of its own, on a host of that name, which can be crashed."""
        process = self._others[name] = self._new_process(name)
        return process.context.copy().run(self._loop.spawn, process, work())

    def crash_process(self, name: str) -> None:
        """All of its tasks end where they are, and its connections are reset."""
        process = self._others.pop(name)
        self.network.kill(process)
        process.die()

    def kill(self, broker: int) -> None:
        """SIGKILL: the page cache stays."""
        self.cluster.kill(self._node(broker))

    def power_loss(self, broker: int) -> None:
        """What was not synced may be gone."""
        self.cluster.power_loss(self._node(broker))

    def start(self, broker: int) -> None:
        self.cluster.start(self._node(broker))

    def pause(self, broker: int) -> None:
        self.cluster.pause(self._node(broker))

    def resume(self, broker: int) -> None:
        self.cluster.resume(self._node(broker))

    def cut(self, source: str, target: str) -> None:
        """Nothing arrives any more from one host at another: "broker-1", "application", or a process's name."""
        self.network.cut(source, target)

    def heal(self) -> None:
        self.network.heal()

    def stop_faults(self) -> None:
        """Mend everything, and let nothing more go wrong by chance."""
        self.nemesis.stop()

    async def until(self, condition: Callable[[], bool], every_s: float = 0.05) -> None:
        """Wait, in virtual time, until it holds."""
        while not condition():
            await asyncio.sleep(every_s)

    def ready(self, broker: int) -> bool:
        return self._node(broker).ready

    def _run(self, scenario: Callable[[Simulation], Awaitable[T]], limit_s: float) -> Simulated[T]:
        loop = self._loop
        with quiet_garbage(), contextlib.closing(loop):
            for node in self.cluster.nodes:
                self.cluster.start(node)
            loop.run_while(lambda: not self.cluster.all_ready and loop.now_us < _READY_US)
            if not self.cluster.all_ready:
                raise RuntimeError(f"the brokers did not start: {self.cluster.ended}")
            self.nemesis.begin()
            task = loop.spawn(self._process, _awaited(scenario(self)))
            loop.run_while(lambda: not task.done() and loop.time() < limit_s)
            if not task.done():
                raise TimeoutError(f"the scenario has not ended within {limit_s:g} s of virtual time")
            result = task.result()
            struck = dict(sorted(self.nemesis.struck.items()))
            return Simulated(result, self.seed, loop.digest, loop.events, loop.time(), struck)

    def _node(self, broker: int) -> Node:
        return self.cluster.nodes[broker - 1]

    def _new_process(self, name: str) -> Process:
        return Process(name, name, hash_seed(self.seed, *name.encode()))


async def _awaited(scenario: Awaitable[T]) -> T:
    return await scenario


def simulate(
    scenario: Callable[[Simulation], Awaitable[T]],
    *,
    seed: int = 1,
    nodes: int = 1,
    config: Mapping[str, str] | None = None,
    faults: Sequence[str] = (),
    limit_s: float = 3_600,
) -> Simulated[T]:
    """Run `scenario(simulation)` to its end against `nodes` simulated brokers. `faults`: kinds that strike by chance,
    of `penstock.sim.options.FAULTS`. `limit_s`: virtual seconds. What the scenario raises is raised, with the seed."""
    try:
        return Simulation(seed, nodes, config or {}, faults)._run(scenario, limit_s)
    except Exception as error:
        error.add_note(f"simulated with seed={seed}, nodes={nodes}: the same seed does it again")
        raise
