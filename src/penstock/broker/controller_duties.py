"""What the active controller does unasked: it fences brokers that are silent, gives leaders back to the replicas that
should have them, and, where a topic allows it, elects whoever is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock
from penstock.broker.config import BrokerConfig
from penstock.broker.controller import Controller
from penstock.broker.journal import Journal
from penstock.core.controller.brokers import decide_fence_broker
from penstock.core.controller.leaders import decide_preferred_leaders, decide_unclean_leaders
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import broker_typed
from penstock.core.metadata.image import Image
from penstock.protocol.message import Message

log = Journal(__name__)

_ELECTIONS_AT_ONCE = 1_000
_IDLE_MS = 60_000
"""looked at again after so long, where nothing is due"""
_AFTER_FAILURE_MS = 100


class ControllerDuties:
    def __init__(self, controller: Controller, config: BrokerConfig, clock: Clock) -> None:
        self._controller = controller
        self._config = config
        self._clock = clock
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._preferred_ms = 0
        """when leaders are next given back"""
        self._unclean_ms = 0
        controller.watch_sessions(self._stirred.set)

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._stirred.clear()
            wait_ms = _IDLE_MS
            if self._controller.heartbeats is not None:
                try:
                    wait_ms = await self._work(self._clock.monotonic_ms())
                except KafkaError as error:
                    log.warning("the controller could not do what was due", fault=str(error))
                    wait_ms = _AFTER_FAILURE_MS
            else:
                self._preferred_ms = self._unclean_ms = 0
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._stirred.wait()
            except TimeoutError:
                continue

    async def _work(self, now_ms: int) -> int:
        """Do what is due; how long nothing else is."""
        await self._fence(now_ms)
        if not self._preferred_ms:
            self._preferred_ms, self._unclean_ms = now_ms + self._preferred_every(), now_ms + self._unclean_every()
        if now_ms >= self._preferred_ms:
            self._preferred_ms = now_ms + self._preferred_every()
            await self._give_leaders_back()
        if now_ms >= self._unclean_ms:
            self._unclean_ms = now_ms + self._unclean_every()
            await self._change(lambda image: decide_unclean_leaders(image, self._controller.node, _ELECTIONS_AT_ONCE))
        sessions = self._controller.heartbeats
        next_end_ms = None if sessions is None else sessions.next_check_ms(self._controller.image)
        due = [self._preferred_ms, self._unclean_ms, *([] if next_end_ms is None else [next_end_ms])]
        return max(0, min(_IDLE_MS, min(due) - self._clock.monotonic_ms()))

    async def _fence(self, now_ms: int) -> None:
        """One after the other: what fencing one has led to counts when the next is fenced."""
        controller = self._controller
        while (sessions := controller.heartbeats) is not None:
            silent = sessions.stale(controller.image, now_ms)
            if silent is None:
                return
            log.info("a broker is fenced: nothing was heard of it for too long", broker=silent)
            await self._change(lambda image, silent=silent: self._fenced(image, silent, now_ms))  # type: ignore[misc]  # its default

    def _fenced(self, image: Image, silent: int, now_ms: int) -> list[Message]:
        """Its heartbeat may have come while this decision waited for its turn."""
        sessions = self._controller.heartbeats
        if sessions is None or sessions.stale(image, now_ms) != silent:
            return []
        return decide_fence_broker(image, self._controller.node, silent)

    async def _give_leaders_back(self) -> None:
        image, node = self._controller.image, self._controller.node
        if broker_typed(image, node, "auto.leader.rebalance.enable") is True:
            await self._change(lambda image: decide_preferred_leaders(image, node, _ELECTIONS_AT_ONCE))

    async def _change(self, decide: Callable[[Image], list[Message]]) -> None:
        await self._controller.change(lambda image: Result(None, decide(image)))

    def _preferred_every(self) -> int:
        return 1000 * self._config.number("leader.imbalance.check.interval.seconds")

    def _unclean_every(self) -> int:
        return self._config.number("unclean.leader.election.interval.ms")
