"""The group coordinators of this broker: a shard for every partition of `__consumer_offsets` that it leads.

The shell around `core.coordinator.runtime`: it appends the batches, wakes whoever waits when the watermark has passed
them, and keeps one timer a shard for the earliest deadline. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Protocol, TypeVar, cast

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Buffer, Clock, Random
from penstock.broker.journal import Journal
from penstock.core.coordinator.batches import encode_batch, load_batches
from penstock.core.coordinator.result import Now, Result
from penstock.core.coordinator.runtime import Pending, Runtime, RuntimeState
from penstock.core.groups import refusals
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.partitions import partition_for
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.state import RequestContext
from penstock.protocol.generated.delete_groups_response import DeletableGroupResult
from penstock.protocol.generated.describe_groups_response import DescribedGroup
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest
from penstock.protocol.generated.leave_group_response import LeaveGroupResponse
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.list_groups_response import ListedGroup, ListGroupsResponse
from penstock.protocol.generated.offset_commit_request import OffsetCommitRequest
from penstock.protocol.generated.offset_commit_response import OffsetCommitResponse
from penstock.protocol.generated.offset_delete_request import OffsetDeleteRequest
from penstock.protocol.generated.offset_delete_response import OffsetDeleteResponse
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from penstock.protocol.generated.offset_fetch_response import OffsetFetchResponseGroup
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse

Request = TypeVar("Request")
Context = TypeVar("Context")

log = Journal(__name__)

RECORDS_PER_STEP = 500
"""records replayed before a loading shard lets others go on: some milliseconds"""


class OffsetsLog(Protocol):
    """The partitions of `__consumer_offsets`, as far as this broker leads them."""

    def partition_count(self) -> int | None:
        """How many the topic has; None while there is no such topic."""

    def append(self, partition: int, batch: bytearray) -> int:
        """Append one batch now and return its last offset. KafkaError: nothing was written."""

    def watermark(self, partition: int) -> int:
        """The first offset that is not committed."""

    def when_committed(self, partition: int, offset: int, then: Callable[[], None]) -> None:
        """Call `then` once, when the watermark is above `offset`, or when it never will be."""

    def read(self, partition: int) -> Iterator[Buffer]:
        """The whole log in pieces of whole batches, from its start to its end."""


class Coordinator:
    """One shard on the loop: who waits for its answers, and when it wants to be woken."""

    def __init__(self, partition: int, runtime: Runtime[GroupShard], offsets: OffsetsLog, clock: Clock) -> None:
        self.partition = partition
        self.runtime = runtime
        self._offsets = offsets
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._futures: dict[int, asyncio.Future[object]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline_ms = 0
        self._flush_is_scheduled = False

    def now(self) -> Now:
        return Now(self._clock.monotonic_ms(), self._clock.wall_ms())

    def answer_at_once(
        self, operation: Callable[[Request, Context, int, Now], Result], request: Request, context: Context
    ) -> object:
        """For requests that never wait and write nothing."""
        return self.runtime.submit(operation, request, context, self.now())

    async def answer(
        self,
        operation: Callable[[Request, Context, int, Now], Result],
        request: Request,
        context: Context,
        *,
        gathers: bool = False,
    ) -> object:
        """`gathers`: the request depends on no record that is still queued, so its own may share a batch with those
        of the rest of this tick."""
        if not gathers and self.runtime.has_queued:
            self.flush()
        answer = self.runtime.submit(operation, request, context, self.now())
        if not isinstance(answer, Pending):
            return answer
        future = self._futures[answer.ticket] = self._loop.create_future()
        if not gathers:
            self.flush()
        elif not self._flush_is_scheduled:
            self._flush_is_scheduled = True
            self._loop.call_soon(self.flush)
        response = await future
        if isinstance(response, KafkaError):
            raise response
        return response

    def start(self) -> None:
        """The log is replayed. Its tail may not be committed yet; who reads it waits for that."""
        now = self.now()
        self.runtime.activate(self._offsets.watermark(self.partition), now)
        self._await_commit(self.runtime.appended_offset, now)
        self.flush()

    def flush(self) -> None:
        """Append what is queued, release what is committed, be woken for what comes next."""
        self._flush_is_scheduled = False
        now = self.now()
        self._release()
        while (records := self.runtime.take_batch()) is not None:
            try:
                last_offset = self._offsets.append(self.partition, encode_batch(records, now.wall_ms))
            except KafkaError as error:
                log.warning("group records not written", partition=self.partition, error=error.code.name)
                self.runtime.append_failed(error, now)
            else:
                self.runtime.appended(last_offset, now)
                self._await_commit(last_offset, now)
            self._release()
        self._arm()

    def stop(self) -> None:
        """The partition is led elsewhere: everybody who waits is told."""
        self.runtime.fail()
        self._release()
        if self._timer is not None:
            self._timer.cancel()

    def _await_commit(self, last_offset: int, now: Now) -> None:
        watermark = self._offsets.watermark(self.partition)
        if watermark > last_offset:
            self.runtime.committed(watermark, now)
        else:
            self._offsets.when_committed(self.partition, last_offset, self._on_commit)

    def _on_commit(self) -> None:
        if self.runtime.state is not RuntimeState.ACTIVE:
            return
        try:
            watermark = self._offsets.watermark(self.partition)
        except KafkaError:
            return  # the partition has just left this broker: `resign` tells everybody
        self.runtime.committed(watermark, self.now())
        self.flush()

    def _release(self) -> None:
        for ticket, response in self.runtime.take_answers():
            future = self._futures.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(response)

    def _arm(self) -> None:
        """One timer, for the earliest deadline. Where that moves out, the timer comes too early and looks again."""
        deadline_ms = self.runtime.next_deadline_ms()
        if deadline_ms is None or (self._timer is not None and self._timer_deadline_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_deadline_ms = deadline_ms
        delay_s = max(0, deadline_ms - self._clock.monotonic_ms()) / 1_000
        self._timer = self._loop.call_later(delay_s, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.flush()
        self.runtime.tick(self.now())
        self.flush()


class Coordinators:
    """Every shard that this broker has, and the way from a group's id to its shard."""

    def __init__(
        self,
        config: GroupConfig,
        offsets: OffsetsLog,
        clock: Clock,
        random: Random,
        create_internal_topic: Callable[[], Awaitable[None]],
        *,
        commit_timeout_ms: int = 5_000,
    ) -> None:
        self._config = config
        self._offsets = offsets
        self._clock = clock
        self._random = random
        self._create_internal_topic = create_internal_topic
        self._commit_timeout_ms = commit_timeout_ms
        self._local: dict[int, Coordinator] = {}
        self._to_load: deque[Coordinator] = deque()
        self._loader: asyncio.Task[None] | None = None
        self._creation: asyncio.Task[None] | None = None

    async def locate(self, group_id: str) -> int:
        """The partition that has the group, for FindCoordinator: the first one to ask has the topic created."""
        count = self._offsets.partition_count()
        if count is None:
            if self._creation is None or self._creation.done():
                self._creation = asyncio.ensure_future(_run(self._create_internal_topic))
            await asyncio.shield(self._creation)
            count = self._offsets.partition_count()
            if count is None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition_for(group_id, count)

    def lead(self, partitions: Iterable[int]) -> None:
        """This broker leads these partitions now: load them, one after the other."""
        for partition in partitions:
            if partition not in self._local:
                shard = GroupShard(self._config, self._random)
                runtime = Runtime(shard, write_timeout_ms=self._commit_timeout_ms)
                self._local[partition] = Coordinator(partition, runtime, self._offsets, self._clock)
                self._to_load.append(self._local[partition])
        if self._to_load and (self._loader is None or self._loader.done()):
            self._loader = asyncio.ensure_future(self._load())

    def resign(self, partitions: Iterable[int]) -> None:
        """Another broker leads these partitions now."""
        for partition in partitions:
            coordinator = self._local.pop(partition, None)
            if coordinator is not None:
                coordinator.stop()

    def shards(self) -> list[GroupShard]:
        """Those that are loaded, for whoever looks on."""
        return [one.runtime.shard for one in self._local.values() if one.runtime.state is RuntimeState.ACTIVE]

    async def close(self) -> None:
        self.resign(list(self._local))
        if self._loader is not None:
            await self._loader

    async def _load(self) -> None:
        while self._to_load:
            coordinator = self._to_load.popleft()
            try:
                await self._replay(coordinator)
                if coordinator.runtime.state is RuntimeState.LOADING:
                    coordinator.start()
            except (KafkaError, OSError) as error:
                log.error("group coordinator not loaded", partition=coordinator.partition, cause=str(error))
                coordinator.runtime.fail()

    async def _replay(self, coordinator: Coordinator) -> None:
        """A little at a time, so that the loop goes on."""
        records = 0
        for piece in self._offsets.read(coordinator.partition):
            for count in load_batches(coordinator.runtime, piece):
                records += count
                if records >= RECORDS_PER_STEP:
                    records = 0
                    await asyncio.sleep(0)
                    if coordinator.runtime.state is not RuntimeState.LOADING:
                        return

    def _coordinator(self, group_id: str) -> Coordinator:
        count = self._offsets.partition_count()
        if count is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        coordinator = self._local.get(partition_for(group_id, count))
        if coordinator is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return coordinator

    async def join_group(self, request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.join, request, context)
            return refusals.fit_join(cast(JoinGroupResponse, answer), context.api_version)
        except KafkaError as error:
            return refusals.join(request, error.code)

    async def sync_group(self, request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.sync, request, context)
            return cast(SyncGroupResponse, answer)
        except KafkaError as error:
            return refusals.sync(error.code)

    def heartbeat(self, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = coordinator.answer_at_once(coordinator.runtime.shard.heartbeat, request, context)
            return cast(HeartbeatResponse, answer)
        except KafkaError as error:
            return refusals.heartbeat(error.code)

    async def leave_group(self, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.leave, request, context)
            return cast(LeaveGroupResponse, answer)
        except KafkaError as error:
            return refusals.leave(error.code)

    async def commit_offsets(self, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        """Topic names are filled in, also where the client sent ids."""
        try:
            coordinator = self._coordinator(request.group_id)
            operation = coordinator.runtime.shard.commit_offsets
            return cast(OffsetCommitResponse, await coordinator.answer(operation, request, context, gathers=True))
        except KafkaError as error:
            return refusals.commit_offsets(request, error.code)

    async def fetch_offsets(self, request: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        """One group of an OffsetFetch. Topic names are filled in, also where the client sent ids."""
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.fetch_offsets, request, require_stable)
            return cast(OffsetFetchResponseGroup, answer)
        except KafkaError as error:
            return refusals.fetch_offsets(request.group_id, error.code)

    async def delete_offsets(self, request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.delete_offsets, request, context)
            return cast(OffsetDeleteResponse, answer)
        except KafkaError as error:
            return refusals.delete_offsets(error.code)

    def describe_groups(self, group_ids: list[str], context: RequestContext) -> list[DescribedGroup]:
        described: list[DescribedGroup] = []
        for group_id in group_ids:
            try:
                coordinator = self._coordinator(group_id)
                answer = coordinator.answer_at_once(coordinator.runtime.shard.describe, [group_id], context)
                described += cast(list[DescribedGroup], answer)
            except KafkaError as error:
                described += refusals.describe([group_id], error.code)
        return described

    def list_groups(self, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
        """The groups of this broker; an error while one of its shards is loading, as the list would not be whole."""
        listed: list[ListedGroup] = []
        for coordinator in self._local.values():
            if coordinator.runtime.state is RuntimeState.FAILED:
                continue
            try:
                answer = coordinator.answer_at_once(coordinator.runtime.shard.list_groups, request, context)
            except KafkaError as error:
                return refusals.list_groups(error.code)
            listed += cast(list[ListedGroup], answer)
        return ListGroupsResponse(groups=listed)

    async def delete_groups(self, group_ids: list[str], context: RequestContext) -> list[DeletableGroupResult]:
        results: list[DeletableGroupResult] = []
        for group_id in dict.fromkeys(group_ids):
            try:
                coordinator = self._coordinator(group_id)
                answer = await coordinator.answer(coordinator.runtime.shard.delete_groups, [group_id], context)
                results += cast(list[DeletableGroupResult], answer)
            except KafkaError as error:
                results += refusals.delete_groups([group_id], error.code)
        return results

    async def forget_topics(self, topics: list[tuple[str, bytes]]) -> None:
        """Topics (name, id) were deleted: so are their offsets, in every shard."""
        for coordinator in list(self._local.values()):
            try:
                await coordinator.answer(coordinator.runtime.shard.forget_topics, topics, None)
            except KafkaError as error:
                log.warning("offsets of deleted topics kept", partition=coordinator.partition, error=error.code.name)


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()
