"""Internal topics of streams groups: asked for once, with the member's rights, and what failed is told."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import ERROR_TEXT_LENGTH_MAX
from penstock.broker.streams_groups import StreamsGroups
from penstock.core.groups.state import RequestContext
from penstock.core.groups.streams.heartbeat import Heartbeat
from penstock.core.groups.streams.layout import Status
from penstock.core.groups.streams.topology import InternalTopic
from penstock.protocol.generated import streams_group_heartbeat_response as told
from penstock.protocol.generated.create_topics_request import CreatableTopic
from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest

MISSING = (InternalTopic("changelog", 3, configs=(("cleanup.policy", "compact"),)), InternalTopic("words", 2, 2))


class Bench:
    """A coordinator that always misses the same topics, and a controller that does as it is told."""

    def __init__(self) -> None:
        self.ms = 0
        self.asked: list[list[CreatableTopic]] = []
        self.faults: dict[str, str] = {}
        self.fails: KafkaError | None = None
        shard = SimpleNamespace(streams_heartbeat=None)
        coordinator = SimpleNamespace(answer=self._answer, runtime=SimpleNamespace(shard=shard))
        groups = SimpleNamespace(find=lambda group_id: coordinator)
        clock = SimpleNamespace(monotonic_ms=lambda: self.ms)
        self.groups = StreamsGroups(cast(Any, groups), self._create, cast(Any, clock))

    async def _answer(self, *_: object) -> Heartbeat:
        status = told.Status(status_code=Status.MISSING_INTERNAL_TOPICS, status_detail="missing")
        return Heartbeat(told.StreamsGroupHeartbeatResponse(status=[status]), MISSING)

    async def _create(self, topics: list[CreatableTopic]) -> dict[str, str]:
        self.asked.append(topics)
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        return self.faults

    async def beat(self, *forbidden: str) -> str:
        request, context = StreamsGroupHeartbeatRequest(), RequestContext(0)
        answer = await self.groups.heartbeat(request, context, lambda name: name not in forbidden)
        assert answer.status is not None
        return answer.status[0].status_detail

    async def rest(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)


def test_they_are_asked_for_as_the_application_wants_them() -> None:
    async def work() -> None:
        bench = Bench()
        assert await bench.beat() == "missing"
        await bench.rest()
        [[changelog, words]] = bench.asked
        assert (changelog.name, changelog.num_partitions, changelog.replication_factor) == ("changelog", 3, -1)
        assert [(one.name, one.value) for one in changelog.configs] == [("cleanup.policy", "compact")]
        assert (words.name, words.num_partitions, words.replication_factor) == ("words", 2, 2)

    asyncio.run(work())


def test_nothing_is_asked_twice_while_the_controller_is_at_it() -> None:
    async def work() -> None:
        bench = Bench()
        await bench.beat()
        await bench.beat()
        await bench.rest()
        assert len(bench.asked) == 1
        await bench.beat()
        await bench.rest()
        assert len(bench.asked) == 2, "it is done, and they are still missing"
        await bench.beat()
        await bench.groups.close()

    asyncio.run(work())


def test_who_may_not_create_one_of_them_creates_none() -> None:
    async def work() -> None:
        bench = Bench()
        assert await bench.beat("words") == "missing; Unauthorized to CREATE on topics words."
        await bench.rest()
        assert bench.asked == []

    asyncio.run(work())


def test_why_one_could_not_be_made_is_told_for_a_while() -> None:
    async def work() -> None:
        bench = Bench()
        bench.faults = {"words": "no room"}
        await bench.beat()
        await bench.rest()
        assert await bench.beat() == "missing; Creation failed: words (no room)."
        await bench.rest()
        bench.ms += 30_000
        assert await bench.beat() == "missing"
        await bench.rest()
        bench.fails = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "nobody answers")
        await bench.beat()
        await bench.rest()
        assert await bench.beat() == "missing; Creation failed: changelog (nobody answers), words (nobody answers)."
        await bench.groups.close()

    asyncio.run(work())


def test_a_long_reason_is_cut_to_what_a_client_is_told() -> None:
    async def work() -> None:
        bench = Bench()
        bench.faults = dict.fromkeys(("changelog", "words"), "x" * 40_000)
        await bench.beat()
        await bench.rest()
        assert len(await bench.beat()) == ERROR_TEXT_LENGTH_MAX + len("...")
        await bench.rest()

    asyncio.run(work())
