"""Markers into the logs that this broker leads: for its own coordinators, and for others by WriteTxnMarkers."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import OFFSETS_TOPIC, TopicPartition
from penstock.base.ports import Clock
from penstock.broker.coordinators import Coordinators
from penstock.broker.partitions import Partitions
from penstock.core.replication.partition import Partition
from penstock.records.control import EndMarker, build_end_marker

_COMMIT_TIMEOUT_S = 30.0


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int


class MarkerWriting:
    def __init__(self, partitions: Partitions, coordinators: Coordinators, clock: Clock) -> None:
        self._partitions = partitions
        self._coordinators = coordinators
        self._clock = clock

    async def write(self, marker: Marker, partitions: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        """Append the marker to each partition, and wait until it is on all copies in sync."""
        batch = build_end_marker(
            EndMarker(marker.committed, marker.coordinator_epoch),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp=self._clock.wall_ms(),
        )
        found: dict[TopicPartition, ErrorCode] = {}
        waits: list[tuple[TopicPartition, asyncio.Future[ErrorCode]]] = []
        for name in partitions:
            try:
                partition = self._partitions.find(name.topic, name.partition)
                waits.append((name, self._committed(partition, self._append(marker, batch[:], partition))))
            except KafkaError as error:
                found[name] = error.code
        if pending := [future for _, future in waits if not future.done()]:
            await asyncio.wait(pending, timeout=_COMMIT_TIMEOUT_S)
        for name, future in waits:
            found[name] = future.result() if future.done() else ErrorCode.REQUEST_TIMED_OUT
        return found

    def _append(self, marker: Marker, batch: bytearray, partition: Partition) -> int:
        """Its offset. The log writes its own numbers into the batch."""
        partition.must_lead()
        version = marker.transaction_version
        if partition.name.topic == OFFSETS_TOPIC:
            # The group's shard learns in the same step what its log says: the offsets count from here on, or are gone.
            return self._coordinators.end_transaction(
                partition.name.partition, batch, marker.producer_id, marker.committed, version
            )
        appended = self._partitions.append(
            partition, batch, 0, len(batch), origin="coordinator", to_all=True, transaction_version=version
        )
        return appended.last_offset

    def _committed(self, partition: Partition, offset: int) -> asyncio.Future[ErrorCode]:
        future: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def passed() -> None:
            if future.done():
                return
            if partition.high_watermark > offset and partition.leading is not None:
                future.set_result(ErrorCode.NONE)
            else:
                future.set_result(ErrorCode.NOT_LEADER_OR_FOLLOWER)

        if partition.high_watermark > offset:
            passed()
        else:
            self._partitions.waiters.when_passed(partition, offset + 1, passed)
        return future
