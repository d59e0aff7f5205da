"""Streams groups on the loop: their coordinator says which internal topics are missing, and this has them made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from penstock.base.errors import KafkaError, shortened
from penstock.base.limits import STREAMS_TOPIC_FAULTS_MAX
from penstock.base.ports import Clock
from penstock.broker.coordinators import Coordinators
from penstock.core.groups.state import RequestContext
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from penstock.core.groups.streams.heartbeat import Heartbeat
    from penstock.core.groups.streams.topology import InternalTopic
    from penstock.protocol.generated.streams_group_describe_response import DescribedGroup
    from penstock.protocol.generated.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
    from penstock.protocol.generated.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

_DEFAULT = -1
_FAULT_KEPT_MS = 30_000
"""members come back every few seconds: by then each has been told"""

CreateTopics = Callable[[list[CreatableTopic]], Awaitable[dict[str, str]]]
"""those that could not be created, with the reason"""


class StreamsGroups:
    """Refusals are KafkaErrors."""

    def __init__(self, groups: Coordinators, create: CreateTopics, clock: Clock) -> None:
        self._groups = groups
        self._create = create
        self._clock = clock
        self._creating: dict[str, asyncio.Task[None]] = {}
        """by topic: those that the controller has been asked for"""
        self._faults: dict[str, tuple[int, str]] = {}
        """topic -> until when members are told, and why it could not be created"""

    async def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, context: RequestContext, may_create: Callable[[str], bool]
    ) -> StreamsGroupHeartbeatResponse:
        """Nobody waits for a topic to be made: the next heartbeat finds it."""
        coordinator = self._groups.find(request.group_id)
        answer = await coordinator.answer(coordinator.runtime.shard.streams_heartbeat, request, context)
        response, missing = cast("Heartbeat", answer)
        if missing:
            self._have_made(response, missing, may_create)
        return response

    async def describe(self, group_id: str, context: RequestContext) -> DescribedGroup:
        coordinator = self._groups.find(group_id)
        answer = await coordinator.answer(coordinator.runtime.shard.describe_streams, [group_id], context)
        return cast("list[DescribedGroup]", answer)[0]

    async def close(self) -> None:
        tasks = list(dict.fromkeys(self._creating.values()))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _have_made(
        self,
        response: StreamsGroupHeartbeatResponse,
        missing: tuple[InternalTopic, ...],
        may_create: Callable[[str], bool],
    ) -> None:
        """All of them or none: a part of them is of no use."""
        forbidden = [topic.name for topic in missing if not may_create(topic.name)]
        if forbidden:
            _add_detail(response, "Unauthorized to CREATE on topics", forbidden)
            return
        faults = [f"{topic.name} ({fault})" for topic in missing if (fault := self._recent_fault(topic.name))]
        if faults:
            _add_detail(response, "Creation failed:", faults)
        wanted = [topic for topic in missing if topic.name not in self._creating]
        if wanted:
            task = asyncio.get_running_loop().create_task(self._make(wanted))
            self._creating.update(dict.fromkeys((topic.name for topic in wanted), task))

    async def _make(self, topics: list[InternalTopic]) -> None:
        names = [topic.name for topic in topics]
        try:
            faults = await self._create([_creatable(topic) for topic in topics])
        except KafkaError as error:
            faults = dict.fromkeys(names, error.message or error.code.name)
        finally:
            for name in names:
                self._creating.pop(name, None)
        until_ms = self._clock.monotonic_ms() + _FAULT_KEPT_MS
        for name in names:
            self._faults.pop(name, None)
            if name in faults:
                self._faults[name] = until_ms, faults[name]
        while len(self._faults) > STREAMS_TOPIC_FAULTS_MAX:
            del self._faults[next(iter(self._faults))]

    def _recent_fault(self, topic: str) -> str | None:
        until_ms, fault = self._faults.get(topic, (0, None))
        return fault if self._clock.monotonic_ms() < until_ms else None


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or _DEFAULT,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )


def _add_detail(response: StreamsGroupHeartbeatResponse, what: str, topics: list[str]) -> None:
    from penstock.core.groups.streams.layout import Status, named  # noqa: PLC0415 loaded by the first streams group

    for status in response.status or ():
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail = shortened(f"{status.status_detail}; {what} {named(topics)}.")
