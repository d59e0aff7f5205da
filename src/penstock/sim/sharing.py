"""The members of a run's share group (KIP-932).

Each is handed records, and says what became of them: most are accepted, some released, rejected, or kept until their
lock ends. What it says goes out at once or with the next fetch. It leaves and comes back now and then. In the liveness
phase everything is accepted until the group has come to the end, as its coordinator says.
"""

from __future__ import annotations

import contextlib
from random import Random
from typing import TYPE_CHECKING

from penstock.base.configs.define import ResourceType
from penstock.base.errors import ErrorCode, KafkaError
from penstock.sim.check.history import Accept, Poll
from penstock.sim.options import Options
from penstock.sim.process import Process
from penstock.wire import admin, aio
from penstock.wire.share_consumer import Acknowledged, AcknowledgeType, Settings, Shared
from penstock.wire.share_group_admin import share_group_offsets

if TYPE_CHECKING:
    from penstock.sim.transacting import Work
    from penstock.sim.workload import Client, Workload

GROUP = "sharers"
_TOPIC = "numbers"
_POLL_MS = 500
_LOCK_MS = "3000"
_DELIVERIES = ("2", "3", "5")
_STAYS = 0.98
_AT_ONCE = 0.4
"""how often what became of records is told by itself, and not with the next fetch"""
_ASKS = 0.2
"""how often a member asks whether the group is at the end, in the liveness phase"""
_REFUSED = (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
"""with these an acknowledgement certainly was not taken"""


class Sharing:
    def __init__(self, workload: Workload, options: Options) -> None:
        self._workload = workload
        self._options = options
        self.kinds = ["sharer"] * options.sharers
        self.works: dict[str, Work] = {"sharer": self._share}
        self._said = 0
        self._drained = False

    async def prepare(self, connection: aio.Client) -> None:
        if self.kinds:
            configs = {
                "share.auto.offset.reset": "earliest",
                "share.record.lock.duration.ms": _LOCK_MS,
                "share.delivery.count.limit": Random(f"deliveries {self._options.seed}").choice(_DELIVERIES),
            }
            await connection.run(admin.alter_configs(connection.cluster, ResourceType.GROUP, GROUP, configs))

    async def _share(self, client: Client, process: Process) -> None:
        while not self._drained:
            with contextlib.suppress(KafkaError):
                async with self._workload.connect(process) as connection:
                    await self._take_part(client, process, connection)
            await self._workload.think(process)

    async def _take_part(self, client: Client, process: Process, connection: aio.Client) -> None:
        random = process.random
        settings = Settings(
            GROUP,
            (_TOPIC,),
            max_wait_ms=_POLL_MS,
            max_records=random.choice((1, 5, 50)),
            exact=random.random() < 0.5,
        )
        member = _Member(self, client)
        consumer = aio.ShareConsumer(connection, settings, member.hear)
        while not self._drained and random.random() < _STAYS:
            if not await self._poll(client, random, consumer, member):
                return
            if self._workload.finishing and random.random() < _ASKS:
                await self._look(connection)
            await self._workload.think(process)
        await consumer.close()

    async def _poll(self, client: Client, random: Random, consumer: aio.ShareConsumer, member: _Member) -> bool:
        workload = self._workload
        name = workload.invoke(client, "take", [Poll()])
        try:
            fetched = await consumer.poll(_POLL_MS)
        except KafkaError:
            workload.complete(client, name, "info")
            return False
        records: dict[int, list[tuple[int, int]]] = {}
        for shared in fetched:
            records.setdefault(shared.partition.partition, []).extend(_records(shared))
        workload.tell_read({f"{_TOPIC}-{partition}": found for partition, found in records.items()})
        workload.complete(client, name, "ok", [Poll(records)])
        for shared in fetched:
            types = self._judge(random, shared)
            member.says(shared, types)
            consumer.acknowledge(shared, types)
        if fetched and random.random() < _AT_ONCE:
            await consumer.commit()
        return True

    def _judge(self, random: Random, shared: Shared) -> dict[int, AcknowledgeType]:
        types = dict.fromkeys(shared.gaps(), AcknowledgeType.GAP)
        for record, _ in shared.records():
            chance = 0.0 if self._workload.finishing else random.random()
            if chance < 0.8:
                types[record.offset] = AcknowledgeType.ACCEPT
            elif chance < 0.9:
                types[record.offset] = AcknowledgeType.RELEASE
            elif chance < 0.95:
                types[record.offset] = AcknowledgeType.REJECT
        return types

    async def _look(self, connection: aio.Client) -> None:
        """Whether the group is done with all that was acked."""
        if not self._workload.producers_done:
            return
        topics = await connection.run(share_group_offsets(connection.cluster, GROUP))
        left = {one.partition_index: one.lag for topic in topics for one in topic.partitions}
        self._drained = self._drained or all(left.get(partition) == 0 for partition in self._workload.last_acked)

    def invoke(self, client: Client, partition: int, offset: int) -> str:
        """An acceptance has a life of its own: it may be under way while its member polls."""
        self._said += 1
        name = f"{client.name}/{self._said}"
        self._workload.note(name, "acknowledge", [Accept(partition, offset)])
        return name

    def complete(self, name: str, told: Acknowledged, offset: int) -> None:
        if told.error is None:
            self._workload.on_accepted(GROUP, str(told.partition), offset)
        refused = told.error is not None and told.error.code in _REFUSED
        self._workload.conclude(name, "ok" if told.error is None else "fail" if refused else "info")


class _Member:
    """What a member has said of its records, and hears of that."""

    def __init__(self, sharing: Sharing, client: Client) -> None:
        self._sharing = sharing
        self._client = client
        self._open: dict[tuple[int, int], str] = {}
        """(partition, offset) -> the operation that accepts it"""

    def says(self, shared: Shared, types: dict[int, AcknowledgeType]) -> None:
        partition = shared.partition.partition
        for offset, kind in types.items():
            if kind is AcknowledgeType.ACCEPT:
                self._open[partition, offset] = self._sharing.invoke(self._client, partition, offset)

    def hear(self, told: Acknowledged) -> None:
        for offset in told.types:
            name = self._open.pop((told.partition.partition, offset), None)
            if name is not None:
                self._sharing.complete(name, told, offset)


def _records(shared: Shared) -> list[tuple[int, int]]:
    return [(record.offset, int(bytes(record.value or b"").rstrip(b"."))) for record, _ in shared.records()]
