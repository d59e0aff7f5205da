"""Damaged copies are repaired from good ones.

What the scrubber or a reader found damaged is asked for from the other brokers that have a copy: the leader first, then
who else is in sync; whoever is not, only where it is known what was written. Meanwhile readers get an error for it, and
a moment later the records. A copy that was found damaged when it was opened ends there and takes no records; once it is
out of sync and another leads, it is cut to what is sound and catches up like any copy that was away.

Where nobody has what is missing, that is told, everything is kept, and it is tried again later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock, Jobs
from penstock.broker.in_thread import in_thread
from penstock.broker.journal import Journal
from penstock.broker.partitions import Partitions
from penstock.core.log.repair import Filling, Gap, Rewriting, Surveyed, sound_at
from penstock.core.replication.partition import Partition
from penstock.core.replication.repair import may_begin_anew, sources
from penstock.protocol.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.message import Message

log = Journal(__name__)

_TIMEOUT_MS = 10_000
_FETCH_BYTES = 1_048_576
_AGAIN_MS = 60_000
"""after nobody had what is missing"""
_NO_SESSION_EPOCH = -1

Ask = Callable[[int, Message, int], Awaitable[Any]]
"""a broker's answer within so many milliseconds; KafkaError where there is none"""


class Repairing:
    def __init__(
        self,
        partitions: Partitions,
        clock: Clock,
        jobs: Jobs,
        node_id: int,
        ask: Ask,
        rejoin: Callable[[Partition], None],
    ) -> None:
        """`rejoin`: have a copy whose log was opened again fetch from its leader."""
        self._partitions = partitions
        self._clock = clock
        self._jobs = jobs
        self._node_id = node_id
        self._ask = ask
        self._rejoin = rejoin
        self._not_before_ms: dict[Partition, int] = {}
        """copies that could not be repaired, and when it is tried again"""
        self._needed: dict[Partition, None] = {}
        """damaged copies that were not cut so far, of which the journal has heard"""

    async def step(self) -> None:
        """Every copy that is known to be damaged, once."""
        now_ms = self._clock.monotonic_ms()
        damaged = [one for one in self._partitions.all() if one.log.damage]
        self._not_before_ms = {one: at_ms for one, at_ms in self._not_before_ms.items() if one in damaged}
        self._needed = {one: None for one in self._needed if one in damaged}
        for partition in damaged:
            if now_ms >= self._not_before_ms.get(partition, now_ms):
                await self._mend(partition)

    async def _mend(self, partition: Partition) -> None:
        try:
            done = self._begin_anew(partition) if partition.log.is_cut_short else await self._repair(partition)
        except (KafkaError, OSError) as fault:
            log.error("a damaged copy could not be repaired", partition=str(partition.name), fault=str(fault))
            done = False
        if not done:
            self._not_before_ms[partition] = self._clock.monotonic_ms() + _AGAIN_MS

    def _begin_anew(self, partition: Partition) -> bool:
        """As soon as it may: others must have heard first that they cannot count on this copy."""
        described, brokers = partition.described, partition.cluster.brokers
        if described is None or not may_begin_anew(described, self._node_id, brokers):
            if partition not in self._needed:
                self._needed[partition] = None
                log.error("a copy stays damaged for now: it may be needed as it is", partition=str(partition.name))
            return True
        self._needed.pop(partition, None)
        self._partitions.reopen(partition)
        self._partitions.upkeep.repairs += 1
        log.warning(
            "a damaged copy was cut and begins anew", partition=str(partition.name), at=partition.log.end_offset
        )
        self._rejoin(partition)
        return True

    async def _repair(self, partition: Partition) -> bool:
        """Whether it need not wait before it is tried again."""
        survey = partition.log.survey(self._clock.wall_ms())
        if survey is None:
            return True
        surveyed = await in_thread(self._jobs, survey.run)
        fillings = [await self._filled(partition, gap, surveyed) for gap in surveyed.gaps]
        missing = [one.gap.offset for one in fillings if not one.is_full]
        if missing:
            self._partitions.upkeep.failed_repairs += 1
            log.error(
                "no good copy was found of what is damaged: it is kept as it is",
                partition=str(partition.name),
                offset=missing[0],
            )
        if surveyed.gaps and len(missing) == len(surveyed.gaps):
            return False
        repaired = await in_thread(self._jobs, Rewriting(self._partitions.disk, surveyed, fillings).run)
        if self._partitions.get(partition.name.topic, partition.name.partition) is not partition:
            return False
        if not partition.log.on_repaired(repaired):
            return False
        self._partitions.commit.want(partition)
        self._partitions.upkeep.repairs += len(repaired.patches)
        replaced = sum(len(one.data) for one in repaired.patches)
        log.warning("a damaged copy was repaired", partition=str(partition.name), replaced_bytes=replaced)
        return not missing

    async def _filled(self, partition: Partition, gap: Gap, surveyed: Surveyed) -> Filling:
        filling = Filling(gap, sound_at(self._partitions.disk, surveyed))
        described, brokers = partition.described, partition.cluster.brokers
        if described is None:
            return filling
        for broker_id in sources(described, self._node_id, brokers, is_known=bool(gap.entries)):
            while not filling.is_full and filling.take(await self._batches(partition, broker_id, filling.offset)):
                pass
            if filling.is_full:
                break
        return filling

    async def _batches(self, partition: Partition, broker_id: int, offset: int) -> bytes:
        """As a consumer gets them: what is committed, and found sound where it is."""
        wanted = FetchPartition(
            partition=partition.name.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            session_epoch=_NO_SESSION_EPOCH,
            topics=[FetchTopic(topic=partition.name.topic, topic_id=partition.topic_id, partitions=[wanted])],
        )
        try:
            answer = await self._ask(broker_id, request, _TIMEOUT_MS)
        except KafkaError as fault:
            log.info("a broker was asked for a good copy in vain", broker=broker_id, fault=str(fault))
            return b""
        for topic in answer.responses:
            for one in topic.partitions:
                if not one.error_code and one.records:
                    return bytes(one.records)
        return b""
