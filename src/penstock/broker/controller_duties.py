"""What the active controller does unasked: it fences brokers that are silent, gives leaders back to the replicas that
should have them, evens data and leaders, and, where a topic allows it, elects whoever is left."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock, Random
from penstock.broker.balancing import Balancing
from penstock.broker.config import BrokerConfig
from penstock.broker.controller import Controller
from penstock.broker.journal import Journal
from penstock.core.controller.balance import decide_balance
from penstock.core.controller.brokers import decide_fence_broker
from penstock.core.controller.features import eligible_leaders_safely
from penstock.core.controller.leaders import decide_preferred_leaders, decide_unclean_leaders
from penstock.core.controller.result import Result
from penstock.core.metadata.image import Image
from penstock.protocol.message import Message

log = Journal(__name__)

_ELECTIONS_AT_ONCE = 1_000
_IDLE_MS = 60_000
"""looked at again after so long, where nothing is due"""
_AFTER_FAILURE_MS = 100
_HELD_MS = 100
"""Woken later than that, this process was held: by a disk that does not take a file, by a machine that slept."""


class ControllerDuties:
    def __init__(self, controller: Controller, config: BrokerConfig, clock: Clock, random: Random) -> None:
        self._controller = controller
        self._balancing = Balancing(config, clock, random)
        self._config = config
        self._clock = clock
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._evening: asyncio.Task[None] | None = None
        """a round of the balancer, apart from the rest: it asks brokers, and one that does not answer must not keep
        another from being fenced"""
        self._due_ms: dict[str, int] = {}
        """when each of `_rounds` is next due; empty while this controller is not active"""
        self._rounds: dict[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "preferred": (1000 * config.number("leader.imbalance.check.interval.seconds"), self._give_leaders_back),
            "unclean": (config.number("unclean.leader.election.interval.ms"), self._elect_uncleanly),
            "balance": (config.number("penstock.balance.interval.ms"), self._begin_balance),
        }
        """what is done every so many milliseconds"""
        controller.watch_sessions(self._stirred.set)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        tasks = [one for one in (self._task, self._evening) if one is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._stirred.clear()
            wait_ms = _IDLE_MS
            if self._controller.heartbeats is None:
                self._due_ms.clear()
            else:
                try:
                    wait_ms = await self._work()
                except KafkaError as error:
                    log.warning("the controller could not do what was due", fault=str(error))
                    wait_ms = _AFTER_FAILURE_MS
                except Exception:  # nobody would be fenced by a controller that still answers
                    log.exception("the controller could not do what was due")
                    wait_ms = _AFTER_FAILURE_MS
            await self._rest(wait_ms)

    async def _rest(self, wait_ms: int) -> None:
        """Until something is due. Silence that is this process's own fault is not held against brokers: their
        heartbeats wait in the sockets."""
        until_ms = self._clock.monotonic_ms() + wait_ms
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._stirred.wait()
        held_ms = self._clock.monotonic_ms() - until_ms
        if held_ms >= _HELD_MS and self._controller.heartbeats is not None:
            log.warning("this node was held, and could hear of no broker meanwhile", ms=held_ms)
            self._controller.heartbeats.forgive(held_ms)

    async def _work(self) -> int:
        """Do what is due; how long nothing else is."""
        if not self._due_ms:
            await self._begin()
        await self._fence()
        for name, (every_ms, work) in self._rounds.items():
            now_ms = self._clock.monotonic_ms()
            if now_ms >= self._due_ms[name]:
                self._due_ms[name] = now_ms + every_ms
                await work()
        sessions = self._controller.heartbeats
        next_end_ms = None if sessions is None else sessions.next_check_ms(self._controller.image)
        due = [*self._due_ms.values(), *([] if next_end_ms is None else [next_end_ms])]
        # A session that begins while nothing is due lasts at least so long, and its end must not be slept through.
        longest_ms = _IDLE_MS if sessions is None else min(_IDLE_MS, sessions.session_timeout_ms)
        return max(0, min(longest_ms, min(due) - self._clock.monotonic_ms()))

    async def _begin(self) -> None:
        """This controller is active from now on."""
        now_ms = self._clock.monotonic_ms()
        self._due_ms = {name: now_ms + every_ms for name, (every_ms, _) in self._rounds.items()}
        if self._controller.image.eligible_leader_replicas_enabled:
            await self._change(lambda image: eligible_leaders_safely(image, self._controller.node))

    async def _fence(self) -> None:
        """One after the other: what fencing one has led to counts when the next is fenced."""
        controller = self._controller
        while (sessions := controller.heartbeats) is not None:
            silent = sessions.stale(controller.image, self._clock.monotonic_ms())
            if silent is None:
                return
            log.info("a broker is fenced: nothing was heard of it for too long", broker=silent)
            await self._change(partial(self._fenced, silent))

    def _fenced(self, silent: int, image: Image) -> list[Message]:
        """Its heartbeat may have come while this decision waited for its turn."""
        sessions = self._controller.heartbeats
        if sessions is None or sessions.stale(image, self._clock.monotonic_ms()) != silent:
            return []
        return decide_fence_broker(image, self._controller.node, silent)

    async def _give_leaders_back(self) -> None:
        if self._config.flag("auto.leader.rebalance.enable"):
            node = self._controller.node
            await self._change(lambda image: decide_preferred_leaders(image, node, _ELECTIONS_AT_ONCE))

    async def _elect_uncleanly(self) -> None:
        node = self._controller.node
        await self._change(lambda image: decide_unclean_leaders(image, node, _ELECTIONS_AT_ONCE))

    async def _begin_balance(self) -> None:
        if not self._config.flag("penstock.balance.enable") or len(self._controller.image.brokers) < 2:
            return
        if self._evening is None or self._evening.done():
            self._evening = asyncio.get_running_loop().create_task(self._balance())

    async def _balance(self) -> None:
        limits = self._balancing.limits
        try:
            sizes = await self._balancing.sizes(self._controller.image)
            if sizes is None:
                sizes, limits = {}, limits._replace(moves=0)
            node = self._controller.node
            moving_bytes = await self._controller.change(lambda image: decide_balance(image, node, sizes, limits))
        except KafkaError as error:
            log.warning("data and leaders could not be evened", fault=str(error))
            return
        if self._due_ms:
            next_ms = self._clock.monotonic_ms() + self._balancing.rest_ms(moving_bytes)
            self._due_ms["balance"] = min(self._due_ms["balance"], next_ms)
            self._stirred.set()

    async def _change(self, decide: Callable[[Image], list[Message]]) -> None:
        await self._controller.change(lambda image: Result(None, decide(image)))
