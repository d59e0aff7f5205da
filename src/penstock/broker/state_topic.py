"""A coordinators' topic as they see it: this broker's partitions of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Buffer
from penstock.broker.partitions import Partitions
from penstock.core.log.verification import Guard
from penstock.core.metadata.image import Image
from penstock.core.replication.partition import Partition
from penstock.records.batch import NO_SEQUENCE, iterate

_PIECE_BYTES = 1_048_576


class StateTopic:
    def __init__(self, topic: str, partitions: Partitions, image: Callable[[], Image]) -> None:
        self._topic = topic
        self._partitions = partitions
        self._image = image

    def partition_count(self) -> int | None:
        topic = self._image().topic(self._topic)
        return None if topic is None else len(topic.partitions)

    def append(self, partition: int, batch: bytearray, *, guard: object = None, transaction_version: int = 0) -> int:
        assert guard is None or isinstance(guard, Guard)
        found = self._find(partition)
        appended = self._partitions.append(
            found,
            batch,
            0,
            len(batch),
            origin="coordinator",
            to_all=True,
            guard=guard,
            transaction_version=transaction_version,
        )
        return appended.last_offset

    def verify(self, partition: int, producer_id: int, epoch: int, now_ms: int) -> Guard | None:
        """As `Log.verify`: a coordinator's batches have no sequence."""
        return self._find(partition).log.verify(producer_id, epoch, NO_SEQUENCE, now_ms)

    def watermark(self, partition: int) -> int:
        return self._find(partition).high_watermark

    def when_committed(self, partition: int, offset: int, then: Callable[[], None]) -> None:
        self._partitions.waiters.when_passed(self._find(partition), offset + 1, then)

    def read(self, partition: int) -> Iterator[Buffer]:
        found = self._find(partition)
        offset = found.log.start_offset
        while offset < found.log.end_offset:
            slices = found.log.read(offset, _PIECE_BYTES, limit_offset=found.log.end_offset)
            if not slices:
                return
            data = b"".join(piece.read() for piece in slices)
            yield data
            offset = _next_offset(data)

    def _find(self, index: int) -> Partition:
        found = self._partitions.get(self._topic, index)
        if found is None or found.leading is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return found


def _next_offset(data: bytes) -> int:
    end = 0
    for _, header in iterate(data):
        end = header.next_offset
    return end
