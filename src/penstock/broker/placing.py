"""Copies that this broker cannot keep any more: the controller is told, so that others lead them.

A log that failed takes no more records until the broker is started again; its partition goes on elsewhere. After the
start, the copy that was found whole is told to be here again. The word for both is AssignReplicasToDirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import LOST_DIRECTORY
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image
from penstock.core.replication.partition import Partition
from penstock.core.replication.placing import directory_to_tell
from penstock.protocol.generated.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

log = Journal(__name__)

_TIMEOUT_MS = 30_000
_AGAIN_S = 0.5

Ask = Callable[[AssignReplicasToDirsRequest, int], Awaitable[Any]]
"""the active controller's answer within so many milliseconds"""


class Placing:
    def __init__(self, partitions: Partitions, node_id: int, directory_id: bytes) -> None:
        self._partitions = partitions
        self._node_id = node_id
        self._directory_id = directory_id
        self._wanted: dict[Partition, bytes] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        partitions.on_failure = self.look

    def start(self, ask: Ask, broker_epoch: Callable[[], int]) -> None:
        for partition in self._partitions.all():
            self.look(partition)
        self._task = asyncio.get_running_loop().create_task(self._send(ask, broker_epoch))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def follow(self, delta: Delta, image: Image) -> None:
        """What the controller knows has changed."""
        for topic_id in delta.changed_topics:
            topic = image.topics_by_id[topic_id]
            for index in topic.partitions:
                partition = self._partitions.get(topic.name, index)
                if partition is not None:
                    self.look(partition)

    def look(self, partition: Partition) -> None:
        """Whether the controller has to be told of this copy."""
        described = partition.described
        if described is None:
            return
        failure, brokers = partition.log.failure, partition.cluster.brokers
        wanted = directory_to_tell(described, self._node_id, self._directory_id, brokers, failed=failure is not None)
        if wanted is None:
            self._wanted.pop(partition, None)
        elif self._wanted.get(partition) != wanted:
            self._wanted[partition] = wanted
            self._wake.set()
            if wanted == LOST_DIRECTORY:
                log.error("a copy is given up, others go on", partition=str(partition.name), reason=failure)

    async def _send(self, ask: Ask, broker_epoch: Callable[[], int]) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            asked, self._wanted = self._wanted, {}
            code = await _told(ask, _request(self._node_id, broker_epoch(), asked)) if asked else ErrorCode.NONE
            if code is ErrorCode.UNSUPPORTED_VERSION:
                log.error("this cluster's metadata cannot tell of copies that are lost: raise its metadata.version")
                return
            if code is not ErrorCode.NONE:
                log.warning("the controller did not hear where copies are", error=code.name)
                await asyncio.sleep(_AGAIN_S)
                for partition in asked:
                    self.look(partition)


async def _told(ask: Ask, request: AssignReplicasToDirsRequest) -> ErrorCode:
    try:
        answer = await ask(request, _TIMEOUT_MS)
    except KafkaError as error:
        return error.code
    return ErrorCode(answer.error_code)


def _request(node_id: int, broker_epoch: int, wanted: dict[Partition, bytes]) -> AssignReplicasToDirsRequest:
    directories: dict[bytes, dict[bytes, list[PartitionData]]] = {}
    for partition, directory in wanted.items():
        of_topic = directories.setdefault(directory, {}).setdefault(partition.topic_id, [])
        of_topic.append(PartitionData(partition_index=partition.name.partition))
    return AssignReplicasToDirsRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        directories=[
            DirectoryData(
                id=directory,
                topics=[TopicData(topic_id=topic, partitions=found) for topic, found in topics.items()],
            )
            for directory, topics in directories.items()
        ],
    )
