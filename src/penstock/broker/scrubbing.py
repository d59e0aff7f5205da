"""The scrubber: segments are read again, slowly, before somebody needs them.

Some pieces every two seconds, four megabytes a second at the most; after a pass over all copies it rests for an hour. A
piece is of one segment: where they are small, several are read in a step, for else a pass over a few megabytes in ten
thousand of them would take hours. What is not as it was written is told in the journal and in the metrics, readers get
an error for it instead of bytes, and `repairing` looks for it elsewhere.
"""

from __future__ import annotations

from collections import deque

from penstock.base.errors import KafkaError
from penstock.base.ports import Jobs
from penstock.broker.in_thread import in_thread
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.core.log.scrub import SCRUB_BYTES, ScrubWork
from penstock.core.replication.partition import Partition

log = Journal(__name__)

REST_STEPS = 1_800
"""between two passes, where a step comes every two seconds: an hour"""
PIECES_MAX = 16
"""of a step: each is a job of its own"""


class Scrubbing:
    def __init__(self, partitions: Partitions, jobs: Jobs, rest_steps: int = REST_STEPS) -> None:
        self._partitions = partitions
        self._jobs = jobs
        self._left: deque[Partition] = deque()
        """what this pass has yet to look at"""
        self._rest_steps = rest_steps
        self._rest = 0

    async def step(self) -> None:
        """As many pieces as come to the bytes of one that is full."""
        if not self._left:
            self._rest -= 1
            if self._rest >= 0:
                return
            self._left.extend(self._partitions.all())
            self._rest = self._rest_steps
        room_bytes = SCRUB_BYTES
        for _ in range(PIECES_MAX):
            found = self._next()
            if found is None or (room_bytes < SCRUB_BYTES and found[1].bytes_left > room_bytes):
                return
            room_bytes -= found[1].bytes_left
            await self._check(*found)

    def _next(self) -> tuple[Partition, ScrubWork] | None:
        while self._left:
            partition = self._left[0]
            name = partition.name
            if self._partitions.get(name.topic, name.partition) is partition and partition.log.failure is None:
                work = partition.log.scrub()
                if work is not None:
                    return partition, work
            self._left.popleft()
        return None

    async def _check(self, partition: Partition, work: ScrubWork) -> None:
        upkeep = self._partitions.upkeep
        try:
            outcome = await in_thread(self._jobs, work.run)
            if self._partitions.get(partition.name.topic, partition.name.partition) is not partition:
                return
            partition.log.on_scrubbed(outcome)
        except FileNotFoundError:
            return  # the segment was dropped meanwhile
        except (KafkaError, OSError) as fault:
            log.error("a copy could not be checked", partition=str(partition.name), fault=str(fault))
            self._left.popleft()
            return
        upkeep.scrubbed_bytes += outcome.end - outcome.start
        if outcome.fault is not None:
            upkeep.damages += 1
            log.error("a copy is damaged", partition=str(partition.name), fault=str(outcome.fault))
