"""DeleteRecords: the leader moves its start, and the answer waits until the other copies have moved theirs (KIP-107).

Followers hear of it at once, with an answer to the fetch that waits, and tell where they start with the next.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.partitions import Partitions
from penstock.core.replication.partition import Partition


class Deletion(NamedTuple):
    partition: Partition
    offset: int
    """records below it are to be gone"""


def begin(partitions: Partitions, topic: str, index: int, offset: int | None) -> Deletion:
    """On the leader. `offset`: None means up to the watermark."""
    partition, target = partitions.delete_before(topic, index, offset)
    return Deletion(partition, target)


async def finish(partitions: Partitions, deletion: Deletion, end_s: float) -> int:
    """Where all copies that are alive start at the least. KafkaError REQUEST_TIMED_OUT where that is too low still at
    `end_s` on the loop's clock, NOT_LEADER_OR_FOLLOWER where another leads by then."""
    partition, offset = deletion
    while (low := partition.low_watermark()) < offset:
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        partitions.waiters.when_heard(partition, heard)
        try:
            async with asyncio.timeout_at(end_s):
                await heard
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"{partition.name}: a copy starts at {low} still, not at {offset}"
            ) from None
    return low
