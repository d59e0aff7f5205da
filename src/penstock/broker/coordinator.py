"""One shard of a coordinator on the loop, and all of them that this broker has.

The shell around `core.coordinator.runtime`: it appends the batches, wakes whoever waits when the watermark has passed
them, and keeps one timer a shard for the earliest deadline. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Buffer, Clock
from penstock.broker.journal import Journal
from penstock.core.coordinator.batches import encode_batch, load_batches
from penstock.core.coordinator.result import Now, Result
from penstock.core.coordinator.runtime import Pending, Runtime, RuntimeState, S
from penstock.core.groups.partitions import partition_for

Request = TypeVar("Request")
Context = TypeVar("Context")

log = Journal(__name__)

RECORDS_PER_STEP = 500
"""records replayed before a loading shard lets others go on: some milliseconds"""


class StateLog(Protocol):
    """The partitions of a coordinator's topic, as far as this broker leads them."""

    def partition_count(self) -> int | None:
        """How many the topic has; None while there is no such topic."""

    def append(self, partition: int, batch: bytearray, *, guard: object = None, transaction_version: int = 0) -> int:
        """Append one batch now and return its last offset. KafkaError: nothing was written."""

    def verify(self, partition: int, producer_id: int, epoch: int, now_ms: int) -> object | None:
        """A guard for the first batch of a transaction, before its coordinator is asked; None where it is open here."""

    def watermark(self, partition: int) -> int:
        """The first offset that is not committed."""

    def when_committed(self, partition: int, offset: int, then: Callable[[], None]) -> None:
        """Call `then` once, when the watermark is above `offset`, or when it never will be."""

    def read(self, partition: int) -> Iterator[Buffer]:
        """The whole log in pieces of whole batches, from its start to its end."""


class Coordinator(Generic[S]):
    """One shard on the loop: who waits for its answers, and when it wants to be woken."""

    def __init__(
        self,
        partition: int,
        runtime: Runtime[S],
        state_log: StateLog,
        clock: Clock,
        on_flushed: Callable[[Coordinator[S]], None] | None = None,
    ) -> None:
        self.partition = partition
        self.runtime = runtime
        self._log = state_log
        self._clock = clock
        self._on_flushed = on_flushed
        """called when the shard may have something to be done beside its answers"""
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
        self.runtime.activate(self._log.watermark(self.partition), now)
        self._await_commit(self.runtime.appended_offset, now)
        self.flush()

    def flush(self) -> None:
        """Append what is queued, release what is committed, be woken for what comes next."""
        self._flush_is_scheduled = False
        now = self.now()
        self._release()
        while (records := self.runtime.take_batch()) is not None:
            try:
                producer = self.runtime.producer
                guard = None if producer is None else producer.guard
                batch = encode_batch(records, now.wall_ms, producer)
                last_offset = self._log.append(self.partition, batch, guard=guard)
            except KafkaError as error:
                log.warning("a coordinator's records not written", partition=self.partition, error=error.code.name)
                self.runtime.append_failed(error, now)
            else:
                self.runtime.appended(last_offset, now)
                self._await_commit(last_offset, now)
            self._release()
        self._arm()
        if self._on_flushed is not None:
            self._on_flushed(self)

    def end_transaction(self, batch: bytearray, producer_id: int, committed: bool, transaction_version: int) -> int:
        """Append the marker that ends a producer's transaction in this partition; its offset. KafkaError: nothing was
        written."""
        if self.runtime.state is not RuntimeState.ACTIVE:
            raise self.runtime.refusal()
        self.flush()
        offset = self._log.append(self.partition, batch, transaction_version=transaction_version)
        self.runtime.ended_transaction(producer_id, committed, offset)
        self._await_commit(offset, self.now())
        return offset

    def stop(self) -> None:
        """The partition is led elsewhere: everybody who waits is told."""
        self.runtime.fail()
        self._release()
        if self._timer is not None:
            self._timer.cancel()

    def _await_commit(self, last_offset: int, now: Now) -> None:
        watermark = self._log.watermark(self.partition)
        if watermark > last_offset:
            self.runtime.committed(watermark, now)
        else:
            self._log.when_committed(self.partition, last_offset, self._on_commit)

    def _on_commit(self) -> None:
        if self.runtime.state is not RuntimeState.ACTIVE:
            return
        try:
            watermark = self._log.watermark(self.partition)
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


class Shards(Generic[S]):
    """Every shard that this broker has, and the way from a key to its shard."""

    def __init__(
        self,
        state_log: StateLog,
        clock: Clock,
        create_topic: Callable[[], Awaitable[None]],
        make: Callable[[int, int], S],
        *,
        commit_timeout_ms: int = 5_000,
        on_flushed: Callable[[Coordinator[S]], None] | None = None,
    ) -> None:
        """`make`: a shard for a partition that is led in an epoch."""
        self.local: dict[int, Coordinator[S]] = {}
        self.loader: asyncio.Task[None] | None = None
        self._log = state_log
        self._clock = clock
        self._create_topic = create_topic
        self._make = make
        self._commit_timeout_ms = commit_timeout_ms
        self._on_flushed = on_flushed
        self._epochs: dict[int, int] = {}
        """of the partitions in `local`"""
        self._to_load: deque[Coordinator[S]] = deque()
        self._creation: asyncio.Task[None] | None = None

    async def locate(self, key: str) -> int:
        """The partition that has the key, for FindCoordinator: the first one to ask has the topic created."""
        count = self._log.partition_count()
        if count is None:
            if self._creation is None or self._creation.done():
                self._creation = asyncio.ensure_future(_run(self._create_topic))
            await asyncio.shield(self._creation)
            count = self._log.partition_count()
            if count is None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition_for(key, count)

    def lead(self, led: Mapping[int, int]) -> None:
        """This broker leads these partitions now, in these epochs, and no others: load those that are new, one after
        the other. A later epoch is a new term, though this broker led before: another may have led between."""
        self.resign([partition for partition in self.local if self._epochs[partition] != led.get(partition)])
        for partition, epoch in led.items():
            if partition not in self.local:
                runtime = Runtime(self._make(partition, epoch), write_timeout_ms=self._commit_timeout_ms)
                coordinator = Coordinator(partition, runtime, self._log, self._clock, self._on_flushed)
                self.local[partition], self._epochs[partition] = coordinator, epoch
                self._to_load.append(coordinator)
        if self._to_load and (self.loader is None or self.loader.done()):
            self.loader = asyncio.ensure_future(self._load())

    def resign(self, partitions: Iterable[int]) -> None:
        """Another broker leads these partitions now."""
        for partition in partitions:
            coordinator = self.local.pop(partition, None)
            if coordinator is not None:
                coordinator.stop()

    def active(self) -> list[S]:
        """Those that are loaded, for whoever looks on."""
        return [one.runtime.shard for one in self.local.values() if one.runtime.state is RuntimeState.ACTIVE]

    def find(self, key: str) -> Coordinator[S]:
        count = self._log.partition_count()
        if count is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        coordinator = self.local.get(partition_for(key, count))
        if coordinator is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return coordinator

    async def close(self) -> None:
        self.resign(list(self.local))
        if self.loader is not None:
            await self.loader

    async def _load(self) -> None:
        while self._to_load:
            coordinator = self._to_load.popleft()
            if coordinator.runtime.state is not RuntimeState.LOADING:
                continue  # it was led elsewhere before its turn came
            try:
                await self._replay(coordinator)
                if coordinator.runtime.state is RuntimeState.LOADING:
                    coordinator.start()
            except (KafkaError, OSError) as error:
                log.error("coordinator not loaded", partition=coordinator.partition, cause=str(error))
                coordinator.stop()
            except Exception as fault:  # our own: it must not keep other shards from being loaded
                coordinator.stop()
                told = {"message": f"coordinator {coordinator.partition} not loaded", "exception": fault}
                asyncio.get_running_loop().call_exception_handler(told)

    async def _replay(self, coordinator: Coordinator[S]) -> None:
        """A little at a time, so that the loop goes on."""
        records = 0
        for piece in self._log.read(coordinator.partition):
            for count in load_batches(coordinator.runtime, piece):
                records += count
                if records >= RECORDS_PER_STEP:
                    records = 0
                    await asyncio.sleep(0)
                    if coordinator.runtime.state is not RuntimeState.LOADING:
                        return


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()
