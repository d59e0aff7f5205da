"""The active controller's shell: sessions begin with its leadership and follow brokers' connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock
from penstock.broker.balancing import Balancing
from penstock.broker.config import BrokerConfig
from penstock.broker.controller import Controller
from penstock.broker.controller_duties import ControllerDuties
from penstock.broker.embedded import single_node
from penstock.broker.quorum import Quorum
from penstock.broker.system import SystemClock, SystemRandom
from penstock.core.controller.balance import Place
from penstock.core.metadata.effective import Node
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from penstock.protocol.message import Message
from tests.unit.core.controller.moves import cluster, orders, partition, replayed

RECONNECT_MS, SESSION_MS = 500, 9_000


class Now:
    def __init__(self) -> None:
        self.ms = 0

    def monotonic_ms(self) -> int:
        return self.ms

    def wall_ms(self) -> int:
        return self.ms


class Log:
    """A quorum that commits at once."""

    def __init__(self) -> None:
        self.image = cluster(partition([1, 2]), alive=(1, 2))
        self.is_leader = False
        self.end_offset = 100
        self.cluster_id = "c"
        self._told: list[Callable[[bool, int], None]] = []

    def on_leadership(self, callback: Callable[[bool, int], None]) -> None:
        self._told.append(callback)

    def lead(self, is_leader: bool) -> None:
        self.is_leader = is_leader
        for told in self._told:
            told(is_leader, 3)

    def propose(self, records: Iterable[Message]) -> asyncio.Future[int]:
        self.image = replayed(self.image, records)
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        committed.set_result(self.end_offset)
        return committed


class Bench:
    def __init__(self, clock: Clock | None = None, **config: str) -> None:
        self.now = Now()
        self.log = Log()
        values = {name.replace("_", "."): value for name, value in config.items()}
        self.config = BrokerConfig({**single_node("/nowhere"), **values})
        clock = self.now if clock is None else clock
        self.controller = Controller(cast(Quorum, self.log), Node(1, {}), self.config, clock)
        self.duties = ControllerDuties(self.controller, self.config, clock, SystemRandom())

    async def beat(self, broker: int, connection: object) -> int:
        request = BrokerHeartbeatRequest(broker_id=broker, broker_epoch=10 + broker, current_metadata_offset=100)
        return (await self.controller.heartbeat(request, connection)).error_code

    async def after(self, ms: int) -> list[int]:
        """Who is fenced when so much time has passed and the controller has looked."""
        self.now.ms += ms
        await self.duties._work()
        return [one.id for one in self.log.image.brokers.values() if one.fenced and one.id in (1, 2)]


def story(told: Callable[[Bench], object]) -> None:
    async def run() -> None:
        bench = Bench()
        bench.log.lead(True)
        await told(bench)  # type: ignore[misc]  # a coroutine

    asyncio.run(run())


def test_a_controller_that_is_not_active_has_no_sessions():
    async def told(bench: Bench) -> None:
        bench.log.lead(False)
        with pytest.raises(KafkaError) as refusal:
            await bench.beat(1, "a")
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER

    story(told)


def test_a_broker_that_falls_silent_is_fenced_and_others_lead():
    async def told(bench: Bench) -> None:
        await bench.beat(1, "a")
        await bench.beat(2, "b")
        bench.now.ms = SESSION_MS - 1_000
        await bench.beat(2, "b")
        assert await bench.after(999) == []
        assert await bench.after(1) == [1]
        assert orders(bench.log.image).leader == 2

    story(told)


def test_a_broker_whose_connection_is_lost_is_fenced_soon():
    async def told(bench: Bench) -> None:
        await bench.beat(1, "a")
        await bench.beat(2, "b")
        bench.controller.lost(1, 11, "a")
        assert await bench.after(RECONNECT_MS - 1) == []
        assert await bench.after(1) == [1]

    story(told)


def test_the_time_in_which_the_controller_itself_was_held_does_not_count():
    async def told(bench: Bench) -> None:
        await bench.beat(1, "a")
        await bench.beat(2, "b")
        bench.duties._stirred.clear()
        resting = asyncio.create_task(bench.duties._rest(10))
        await asyncio.sleep(0)
        bench.now.ms += SESSION_MS + 10
        await resting
        assert await bench.after(0) == [], "what they sent meanwhile has not been read yet"
        assert await bench.after(SESSION_MS - 11) == []
        assert await bench.after(1) == [1, 2]

    story(told)


def test_a_connection_that_was_replaced_by_another_may_end():
    async def told(bench: Bench) -> None:
        await bench.beat(2, "b")
        await bench.beat(1, "old")
        await bench.beat(1, "new")
        bench.controller.lost(1, 11, "old")
        assert await bench.after(RECONNECT_MS) == []

    story(told)


def test_a_broker_that_is_back_in_time_is_not_fenced():
    async def told(bench: Bench) -> None:
        await bench.beat(2, "b")
        await bench.beat(1, "a")
        bench.controller.lost(1, 11, "a")
        bench.now.ms += RECONNECT_MS - 1
        await bench.beat(1, "again")
        assert await bench.after(RECONNECT_MS) == []

    story(told)


def test_sessions_of_an_earlier_leadership_do_not_count():
    async def told(bench: Bench) -> None:
        await bench.beat(1, "a")
        bench.log.lead(False)
        bench.now.ms = 100_000
        bench.log.lead(True)
        await bench.beat(1, "a")
        assert await bench.after(3 * RECONNECT_MS) == [2], "the other has not been heard by this controller"

    story(told)


def test_a_stale_heartbeat_is_told_so():
    async def told(bench: Bench) -> None:
        request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=10)
        answer = await bench.controller.heartbeat(request)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH

    story(told)


def test_an_active_controller_sets_the_minimum_that_eligible_leaders_are_judged_by():
    async def told(bench: Bench) -> None:
        await bench.after(0)
        assert bench.log.image.configs == {(4, ""): {"min.insync.replicas": "1"}}

    story(told)


def test_a_silent_broker_is_fenced_in_a_clusters_first_minute():
    """While nobody had a session the controller had nothing to look after: it must not sleep through the end of the
    first one that begins."""

    async def run() -> None:
        bench = Bench(SystemClock(), broker_session_timeout_ms="50")
        bench.log.image = cluster(partition([1, 2], [1], leader=-1), alive=())
        bench.log.lead(True)
        bench.duties.start()
        try:
            async with asyncio.timeout(10):
                while not bench.log.image.configs:  # its first round is over
                    await asyncio.sleep(0.001)
                await bench.beat(1, "a")
                assert not bench.log.image.brokers[1].fenced
                while not bench.log.image.brokers[1].fenced:
                    await asyncio.sleep(0.001)
        finally:
            await bench.duties.stop()

    asyncio.run(run())


def test_a_controller_that_fails_at_what_is_due_tries_again(caplog):
    async def run() -> None:
        bench = Bench(SystemClock(), broker_session_timeout_ms="50")
        bench.log.lead(True)
        failures = [OSError("no space left"), AssertionError("a fault of our own")]
        propose = bench.log.propose

        def fail_first(records: Iterable[Message]) -> asyncio.Future[int]:
            if failures:
                raise failures.pop(0)
            return propose(records)

        bench.log.propose = fail_first
        bench.duties.start()
        try:
            async with asyncio.timeout(10):
                while not bench.log.image.brokers[1].fenced:
                    await asyncio.sleep(0.001)
        finally:
            await bench.duties.stop()

    asyncio.run(run())
    told = [repr(one.exc_info[1]) for one in caplog.records if one.exc_info]
    assert told == ["OSError('no space left')", "AssertionError('a fault of our own')"]


def test_a_broker_that_does_not_tell_the_balancer_its_sizes_keeps_no_other_from_being_fenced(monkeypatch):
    asked = asyncio.Event()

    async def silence(*_: object) -> dict[Place, int]:
        asked.set()
        await asyncio.Event().wait()
        return {}

    async def told(bench: Bench) -> None:
        monkeypatch.setattr(Balancing, "sizes", silence)
        await bench.after(0)
        await bench.beat(1, "a")
        await bench.beat(2, "b")
        bench.now.ms = bench.config.number("penstock.balance.interval.ms") - 1
        await bench.beat(1, "a")
        await bench.beat(2, "b")
        async with asyncio.timeout(10):
            assert await bench.after(1) == []
            await asked.wait()
            await bench.beat(1, "a")
            assert await bench.after(SESSION_MS - 1) == [2]
        await bench.duties.stop()

    story(told)


def test_while_there_is_something_to_move_the_balancer_looks_again_soon(monkeypatch):
    """Else a broker that is added waits a minute for every four of its copies, however small they are."""
    rounds: list[int] = []

    async def told(bench: Bench) -> None:
        async def sizes(*_: object) -> dict[Place, int]:
            rounds.append(bench.now.ms // 1000)
            return {}

        monkeypatch.setattr(Balancing, "sizes", sizes)
        bench.log.image = cluster(*[partition([1])] * 8, alive=(1, 2))
        await bench.after(0)
        for _ in range(200):
            await bench.beat(1, "a")
            await bench.beat(2, "b")
            await bench.after(1_000)
            await asyncio.sleep(0)
            if bench.now.ms == 71_000:
                bench.log.image = cluster(*[partition([1]), partition([2])] * 4, alive=(1, 2))
            while bench.duties._evening is not None and not bench.duties._evening.done():
                await asyncio.sleep(0)
        await bench.duties.stop()

    story(told)
    assert rounds == [60, 65, 70, 75, 135, 195], "on their way from 60 on, there before 75"


def test_no_data_is_moved_by_guesses_while_a_broker_does_not_tell_its_sizes(monkeypatch):
    """Leaders are evened all the same."""

    async def told(bench: Bench, sizes: dict[Place, int] | None) -> list[tuple[int, ...]]:
        async def answer(*_: object) -> dict[Place, int] | None:
            return sizes

        monkeypatch.setattr(Balancing, "sizes", answer)
        bench.log.image = cluster(*[partition([1])] * 4, *[partition([1, 2])] * 2, alive=(1, 2))
        await bench.duties._balance()
        return [one.replicas for one in bench.log.image.topics["orders"].partitions.values()]

    async def both(bench: Bench) -> None:
        assert await told(bench, None) == [(1,), (1,), (1,), (1,), (2, 1), (2, 1)]
        assert (2, 1) in (await told(bench, {}))[:4], "on its way"

    story(both)
