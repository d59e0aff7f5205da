"""The members of a run's consumer group, by the consumer protocol (KIP-848).

Each process draws how it takes part: by the topic's name or by a regular expression, as itself or as a static member,
with an assignor of its choice. It leaves and comes back now and then, another way. In the liveness phase the group
reads to the end, and commits that.
"""

from __future__ import annotations

import contextlib
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.sim.process import Process
from penstock.wire import aio, group

if TYPE_CHECKING:
    from penstock.sim.transacting import Work
    from penstock.sim.workload import Client, Workload

GROUP = "consumers"
_REGEXES = ("numb.*", "n[a-z]+s", "numbers|letters")
_ASSIGNORS = (None, "uniform", "range")
_STATIC = 0.3
_BY_REGEX = 0.4
_STAYS = 0.98
_REBALANCE_MS = 3_000


class Consuming:
    def __init__(self, workload: Workload, consumers: int) -> None:
        self._workload = workload
        self.kinds = ["consumer"] * consumers
        self.works: dict[str, Work] = {"consumer": self._consume}

    async def _consume(self, client: Client, process: Process) -> None:
        while not self._is_consumed():
            with contextlib.suppress(KafkaError):
                async with self._workload.connect(process) as connection:
                    await self._take_part(client, process, connection)
            await self._workload.think(process)

    async def _take_part(self, client: Client, process: Process, connection: aio.Client) -> None:
        member = _Member(self._workload, client)
        consumer = aio.GroupConsumer(
            connection, _draw(process.random, client), self._workload.fetch_settings(client), member.hear
        )
        member.consumer = consumer
        member.tell(())
        self._workload.subscribe(client)
        stays = True
        while stays and not self._is_consumed():
            stays = await self._workload.poll(client, consumer, GROUP, member.rebalanced)
            stays = stays and process.random.random() < _STAYS
            if stays and self._workload.finishing:
                # Who committed the end may have crashed before it heard of that.
                await self._workload.commit(consumer, GROUP)
            await self._workload.think(process)
        await consumer.close()

    def _is_consumed(self) -> bool:
        """All that was acked, and committed by the group."""
        workload = self._workload
        return workload.producers_done and all(
            workload.committed.get((GROUP, partition), 0) > offset for partition, offset in workload.last_acked.items()
        )


class _Member:
    """What a client hears of its partitions, and tells of them."""

    def __init__(self, workload: Workload, client: Client) -> None:
        self._workload = workload
        self._client = client
        self.consumer: aio.GroupConsumer | None = None
        self.rebalanced: dict[int, None] = {}

    def hear(self, event: group.Assigned | group.Revoked | group.Lost) -> None:
        assert self.consumer is not None
        self.rebalanced.update({one.partition: None for one in event.partitions})
        known = self.consumer.assignment
        if isinstance(event, group.Assigned):
            self.tell((*known, *event.partitions))
        else:
            self.tell(tuple(one for one in known if one not in event.partitions))

    def tell(self, partitions: tuple[TopicPartition, ...]) -> None:
        assert self.consumer is not None
        member_id = self.consumer.core.identity.member_id
        self._workload.on_owned(GROUP, self._client.name, member_id, partitions)


def _draw(random: Random, client: Client) -> group.Settings:
    by_regex = random.random() < _BY_REGEX
    subscription: dict[str, Any] = {"topics": (), "topic_regex": random.choice(_REGEXES)}
    return group.Settings(
        GROUP,
        **(subscription if by_regex else {"topics": ("numbers",)}),
        instance_id=client.name if random.random() < _STATIC else None,
        rebalance_timeout_ms=_REBALANCE_MS,
        protocol="consumer",
        server_assignor=random.choice(_ASSIGNORS),
    )
