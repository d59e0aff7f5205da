"""The in-sync replicas of what this broker leads: laggards are looked for, changes are asked of the controller.

Whatever comes up while a request is with the controller goes with the next one, all partitions together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.core.replication.isr import IsrAnswer, IsrChange
from penstock.core.replication.partition import Partition
from penstock.protocol.generated.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from penstock.protocol.generated.alter_partition_response import AlterPartitionResponse

log = Journal(__name__)

_TIMEOUT_MS = 30_000
_AGAIN_S = 0.05
_AT_ONCE = 256
"""partitions looked at before the loop gets its turn"""

Ask = Callable[[AlterPartitionRequest, int], Awaitable[Any]]
"""the active controller's answer within so many milliseconds"""
_Asked = list[tuple[Partition, IsrChange]]


class Isr:
    def __init__(self, partitions: Partitions, clock: Clock, node_id: int) -> None:
        self._partitions = partitions
        self._clock = clock
        self._node_id = node_id
        self._wanted: dict[Partition, IsrChange] = {}
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, ask: Ask, broker_epoch: Callable[[], int]) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._send(ask, broker_epoch)), loop.create_task(self._look())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def ask(self, changes: Iterable[tuple[Partition, IsrChange]]) -> None:
        for partition, change in changes:
            self.change(partition, change)

    def change(self, partition: Partition, change: IsrChange) -> None:
        self._wanted[partition] = change
        self._wake.set()

    async def _look(self) -> None:
        """Twice within replica.lag.time.max.ms, as Kafka does."""
        cluster = self._partitions.cluster
        while True:
            await asyncio.sleep(cluster.lag_max_ms / 2000)
            cluster.now_ms = self._clock.monotonic_ms()
            for count, partition in enumerate(list(self._partitions.all())):
                # One that was about to join, and that the watermark waited for, may have fallen silent.
                self._partitions.advance(partition)
                change = partition.laggards()
                if change is not None:
                    log.info("copies have fallen behind", partition=str(partition.name), in_sync=str(change.members))
                change = change or partition.joiner()
                if change is not None:
                    self.change(partition, change)
                if count % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _send(self, ask: Ask, broker_epoch: Callable[[], int]) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            asked, self._wanted = list(self._wanted.items()), {}
            answers = await self._answers(ask, asked, broker_epoch())
            again = [
                (partition, change)
                for partition, change in asked
                if self._settle(partition, change, answers.get((change.topic_id, change.index), _UNANSWERED))
            ]
            if again:
                await asyncio.sleep(_AGAIN_S)
                for partition, change in again:
                    self._wanted.setdefault(partition, change)
                self._wake.set()

    async def _answers(self, ask: Ask, asked: _Asked, broker_epoch: int) -> dict[tuple[bytes, int], IsrAnswer]:
        try:
            response = await ask(_request(self._node_id, broker_epoch, asked), _TIMEOUT_MS)
        except KafkaError as error:
            log.warning("the controller did not change the ISR", error=error.code.name)
            return {}
        return _read(response)

    def _settle(self, partition: Partition, change: IsrChange, answer: IsrAnswer) -> bool:
        """Whether it must be asked again."""
        leading = partition.leading
        before = () if leading is None else leading.isr
        again = partition.answered(change, answer)
        upkeep = self._partitions.upkeep
        if answer.error is not ErrorCode.NONE:
            upkeep.isr_failures += 1
        elif leading is not None:
            upkeep.isr_shrinks += len(leading.isr) < len(before)
            upkeep.isr_expands += len(leading.isr) > len(before)
        self._partitions.advance(partition)
        if again is None and answer.error is ErrorCode.NONE:
            another = partition.joiner()
            if another is not None:
                self.change(partition, another)
        return again is not None


_UNANSWERED = IsrAnswer(ErrorCode.REQUEST_TIMED_OUT)


def _request(node_id: int, broker_epoch: int, asked: _Asked) -> AlterPartitionRequest:
    topics: dict[bytes, TopicData] = {}
    for _, change in asked:
        topic = topics.get(change.topic_id)
        if topic is None:
            topic = topics[change.topic_id] = TopicData(topic_id=change.topic_id, partitions=[])
        topic.partitions.append(
            PartitionData(
                partition_index=change.index,
                leader_epoch=change.leader_epoch,
                new_isr_with_epochs=[BrokerState(broker_id=one, broker_epoch=epoch) for one, epoch in change.isr],
                leader_recovery_state=change.leader_recovery_state,
                partition_epoch=change.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=node_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def _read(response: AlterPartitionResponse) -> dict[tuple[bytes, int], IsrAnswer]:
    """Empty where the whole request was refused: then all of it is asked again."""
    if response.error_code:
        log.warning("the controller refused to change the ISR", error=ErrorCode(response.error_code).name)
        return {}
    return {
        (topic.topic_id, one.partition_index): IsrAnswer(
            ErrorCode(one.error_code),
            one.leader_epoch,
            one.partition_epoch,
            tuple(one.isr),
            one.leader_recovery_state,
        )
        for topic in response.topics
        for one in topic.partitions
    }
