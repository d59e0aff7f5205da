"""Records that a share group gives up, copied to its dead letter topic with what happened to them in their headers.

A copy goes to the partition of the same number, modulo the topic's partitions. It is there, on all copies in sync,
before its record is archived; where a crash comes between, there may be two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Random
from penstock.broker.peer_clients import client_of
from penstock.broker.share_reading import batch_at
from penstock.core.metadata.image import Image, Topic
from penstock.core.replication.partition import Partition
from penstock.core.sharing.partition import Dead
from penstock.records.record import Header, Record, read_records

if TYPE_CHECKING:
    from penstock.wire.aio import Client

TOPIC, PARTITION, OFFSET = "penstock.dead.topic", "penstock.dead.partition", "penstock.dead.offset"
_TIMEOUT_MS = 15_000
COUNT, REASON, GROUP = "penstock.dead.delivery.count", "penstock.dead.reason", "penstock.dead.group"


class DeadLetters:
    def __init__(
        self,
        node_id: int,
        listener: str,
        image: Callable[[], Image],
        create: Callable[[list[str]], Awaitable[None]],
        clock: Clock,
        random: Random,
    ) -> None:
        self._node_id = node_id
        self._listener = listener
        """by which brokers reach each other"""
        self._image = image
        self._create = create
        self._clock = clock
        self._random = random
        self._client: Client | None = None

    async def bury(self, topic: str, group: str, partition: Partition, dead: Sequence[Dead]) -> None:
        from penstock.wire.aio import Producer  # noqa: PLC0415 most brokers never need it
        from penstock.wire.produce import Settings  # noqa: PLC0415

        target = await self._topic(topic)
        number = partition.name.partition % len(target.partitions)
        records = [
            (record, _story(partition, group, one, record)) for one in dead for record in _records(partition, one)
        ]
        settings = Settings(idempotent=False, delivery_timeout_ms=_TIMEOUT_MS)
        async with Producer(self._connected(), settings) as producer:
            sent = [
                await producer.send(
                    topic,
                    record.value,
                    key=record.key,
                    partition=number,
                    headers=[*_without(record.headers), *story],
                    timestamp_ms=record.timestamp,
                )
                for record, story in records
            ]
            for one_sent in sent:
                await producer.delivered(one_sent)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _topic(self, name: str) -> Topic:
        if name not in self._image().topics:
            await self._create([name])
        found = self._image().topics.get(name)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the dead letter topic {name} is not there")
        return found

    def _connected(self) -> Client:
        if self._client is None:
            me = self._image().brokers.get(self._node_id)
            where = None if me is None else me.endpoint(self._listener)
            if where is None:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE)
            self._client = client_of(where.host, where.port, "penstock-dead-letters", self._clock, self._random)
        return self._client


def _records(partition: Partition, dead: Dead) -> list[Record]:
    """Those that are still in the log."""
    out: list[Record] = []
    at = max(dead.first_offset, partition.log.start_offset)
    while at <= dead.last_offset:
        found = batch_at(partition, at, partition.high_watermark, committed_only=False)
        if found is None:
            break
        if found.batch.deliverable:
            out += [one for one in read_records(found.piece.read()) if at <= one.offset <= dead.last_offset]
        at = found.batch.last_offset + 1
    return out


def _story(partition: Partition, group: str, dead: Dead, record: Record) -> list[Header]:
    told = {
        TOPIC: partition.name.topic,
        PARTITION: partition.name.partition,
        OFFSET: record.offset,
        GROUP: group,
        COUNT: dead.delivery_count,
        REASON: dead.reason,
    }
    return [(name, str(value).encode()) for name, value in told.items()]


def _without(headers: Sequence[Header]) -> list[Header]:
    """A record that was given up before tells its last story only."""
    return [one for one in headers if not one[0].startswith("penstock.dead.")]
