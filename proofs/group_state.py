"""A million committed offsets of ten thousand groups in one broker: how soon they are there again after a restart, what
they take of memory and of an idle processor. Beside Apache Kafka, in the same run.

Every group has committed an offset for each partition of one topic, which it names by its id, as clients do now. The
broker is killed and started again; the time counts from the start of the process until a group of each partition of
`__consumer_offsets` is told its offsets. In the end every group is asked, and every offset is what was committed.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import NO_ID
from penstock.core.groups.partitions import partition_for
from penstock.protocol.generated import offset_commit_request as committing
from penstock.protocol.generated import offset_fetch_request as fetching
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.wire.aio import Client
from proofs.either_broker import EitherBroker
from proofs.processes import cpu_seconds, resident_bytes

TOPIC = "read-by-many"
PARTITIONS = 50
"""of __consumer_offsets, as by default"""
AT_ONCE = 16
LIMIT_S = 300.0
_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class Groups:
    """So many groups, each with an offset in each of so many partitions."""

    def __init__(self, address: str, count: int, each: int) -> None:
        self._address = address
        self._count = count
        self._each = each
        self._topic_id = NO_ID

    async def prepare(self) -> None:
        """The topic that is read, and the coordinators."""
        async with Client(self._address) as client:
            topic = CreatableTopic(name=TOPIC, num_partitions=self._each, replication_factor=1)
            made = await client.request(None, CreateTopicsRequest(topics=[topic], timeout_ms=60_000), timeout_ms=90_000)
            self._topic_id = made.topics[0].topic_id
            await client.request(None, FindCoordinatorRequest(key_type=0, coordinator_keys=[_name(0)]))
            for group in self._one_of_each():
                await self._until_told(client, group)

    async def commit(self) -> None:
        async with Client(self._address) as client:

            async def commit(group: int) -> None:
                answer = await client.request(None, self._commit(group), timeout_ms=60_000)
                codes = {one.error_code for topic in answer.topics for one in topic.partitions}
                assert codes == {0}, f"{_name(group)}: {codes}"

            await self._for_all(commit)

    async def loaded(self) -> tuple[float, float]:
        """When the first group was told its offsets, and when a group of each partition had been, in s."""
        async with Client(self._address) as client:

            async def told(group: int) -> float:
                await self._until_told(client, group)
                return time.monotonic()

            times = await asyncio.gather(*map(told, self._one_of_each()))
            return min(times), max(times)

    async def verify(self) -> None:
        async with Client(self._address) as client:

            async def verify(group: int) -> None:
                answer = await client.request(None, self._fetch(group, self._each), timeout_ms=60_000)
                (topic,) = answer.groups[0].topics
                found = {one.partition_index: one.committed_offset for one in topic.partitions}
                expected = {partition: _offset(group, partition) for partition in range(self._each)}
                assert found == expected, f"{_name(group)} has other offsets than it committed"

            await self._for_all(verify)

    async def _for_all(self, work: Callable[[int], Awaitable[None]]) -> None:
        """Some at a time."""
        left = iter(range(self._count))

        async def take() -> None:
            for group in left:
                await work(group)

        await asyncio.gather(*(take() for _ in range(AT_ONCE)))

    async def _until_told(self, client: Client, group: int) -> None:
        deadline_s = time.monotonic() + LIMIT_S
        while True:
            try:
                answer: Any = await client.request(None, self._fetch(group, 1), timeout_ms=10_000)
                if ErrorCode(answer.groups[0].error_code) not in _AGAIN:
                    return
            except KafkaError:
                pass
            assert time.monotonic() < deadline_s, f"the offsets are not told after {LIMIT_S:g} s"
            await asyncio.sleep(0.1)

    def _one_of_each(self) -> list[int]:
        """A group of every partition of `__consumer_offsets` that has one."""
        found: dict[int, int] = {}
        for group in range(self._count):
            found.setdefault(partition_for(_name(group), PARTITIONS), group)
        return list(found.values())

    def _commit(self, group: int) -> committing.OffsetCommitRequest:
        partitions = [
            committing.OffsetCommitRequestPartition(partition_index=index, committed_offset=_offset(group, index))
            for index in range(self._each)
        ]
        topic = committing.OffsetCommitRequestTopic(name=TOPIC, topic_id=self._topic_id, partitions=partitions)
        return committing.OffsetCommitRequest(group_id=_name(group), topics=[topic])

    def _fetch(self, group: int, count: int) -> fetching.OffsetFetchRequest:
        topic = fetching.OffsetFetchRequestTopics(
            name=TOPIC, topic_id=self._topic_id, partition_indexes=list(range(count))
        )
        asked = fetching.OffsetFetchRequestGroup(group_id=_name(group), topics=[topic])
        return fetching.OffsetFetchRequest(groups=[asked])


def run(
    groups: int = 10_000, offsets: int = 1_000_000, idle_s: float = 20, brokers: Iterable[str] = ("apache", "penstock")
) -> dict[str, object]:
    figures: dict[str, object] = {"groups": groups, "offsets": offsets, "load_before": os.getloadavg()}
    for broker in brokers:
        with tempfile.TemporaryDirectory(prefix="group-state-") as place:
            node = EitherBroker(Path(place), offsets_topic_num_partitions=str(PARTITIONS))
            node.format()
            figures[broker] = _story(node, broker, groups, offsets // groups, idle_s)
    return {**figures, "load_after": os.getloadavg()}


def _story(node: EitherBroker, broker: str, count: int, each: int, idle_s: float) -> dict[str, object]:
    start, groups = node.apache if broker == "apache" else node.penstock, Groups(node.address, count, each)
    with start(kill=True):
        asyncio.run(groups.prepare())
        empty_bytes = resident_bytes(node.pid)
        began_s = time.monotonic()
        asyncio.run(groups.commit())
        committed_s = time.monotonic() - began_s
        live_bytes = resident_bytes(node.pid)
    began_s = time.monotonic()
    with start():
        first_s, all_s = asyncio.run(groups.loaded())
        used_s = cpu_seconds(node.pid)
        time.sleep(idle_s)
        idle = (cpu_seconds(node.pid) - used_s) / idle_s
        loaded_bytes = resident_bytes(node.pid)
        asyncio.run(groups.verify())
    return {
        "offsets_committed_per_second": round(count * each / committed_s),
        "megabytes_empty": round(empty_bytes / 1e6, 1),
        "megabytes_after_commits": round(live_bytes / 1e6, 1),
        "megabytes_after_load": round(loaded_bytes / 1e6, 1),
        "bytes_of_memory_for_an_offset": round((loaded_bytes - empty_bytes) / (count * each)),
        "seconds_until_first_offsets_are_told": round(first_s - began_s, 2),
        "seconds_until_all_are_loaded": round(all_s - began_s, 2),
        "processor_seconds_of_start_and_load": round(used_s, 2),
        "idle_processor_percent": round(100 * idle, 2),
    }


def _name(group: int) -> str:
    return f"group-{group:05d}"


def _offset(group: int, partition: int) -> int:
    return 1_000_000 * partition + group
