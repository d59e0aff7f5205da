"""The asyncio twins: the same names and arguments, awaited.

The loop never waits for the network: a thread of their own does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from penstock.base.ids import TopicPartition
from penstock.client.consumer import BUFFERED_MAX, Consumer, Offset, Partition
from penstock.client.producer import Producer
from penstock.client.records import HeadersInput, K, Record, RecordMetadata, V

T = TypeVar("T")


class AsyncProducer(Generic[K, V]):
    """`async with AsyncProducer("localhost:9092") as p: await p.send("orders", b"...")`; arguments as for
    `Producer`.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **arguments: Any) -> None:
        self.sync: Producer[K, V] = Producer(bootstrap_servers, **arguments)

    async def send(
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        headers: HeadersInput | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """Waits until the brokers have acknowledged the record. For many at once: `enqueue`, then gather."""
        return await self.enqueue(topic, value, key, headers, partition, timestamp_ms)

    def enqueue(
        self,
        topic: str,
        value: V | None,
        key: K | None = None,
        headers: HeadersInput | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Hands the record over at once, in the order of the calls; the future resolves with its acknowledgement."""
        return asyncio.wrap_future(self.sync.send(topic, value, key, headers, partition, timestamp_ms))

    async def flush(self, timeout_s: float | None = None) -> int:
        return await asyncio.to_thread(self.sync.flush, timeout_s)

    async def init_transactions(self, timeout_s: float = 30.0) -> None:
        await asyncio.to_thread(self.sync.init_transactions, timeout_s)

    @asynccontextmanager
    async def transaction(self, timeout_s: float = 60.0) -> AsyncIterator[Self]:
        """As `Producer.transaction`."""
        context = self.sync.transaction(timeout_s)
        await asyncio.to_thread(context.__enter__)
        try:
            yield self
        except BaseException as exc:
            await asyncio.to_thread(context.__exit__, type(exc), exc, exc.__traceback__)
            raise
        await asyncio.to_thread(context.__exit__, None, None, None)

    def metrics(self) -> dict[str, float]:
        return self.sync.metrics()

    async def close(self, timeout_s: float | None = None) -> None:
        await asyncio.to_thread(self.sync.close, timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncConsumer(Generic[K, V]):
    """`async with AsyncConsumer(topics=["orders"], group="g") as c: async for record in c: ...`; arguments as for
    `Consumer`.
    """

    def __init__(self, bootstrap_servers: str | Iterable[str] | None = None, **arguments: Any) -> None:
        self._topics = list(arguments.pop("topics", ()))
        self.sync: Consumer[K, V] = Consumer(bootstrap_servers, **arguments)
        # One thread, so that calls keep their order and none of them meets another inside the library.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="penstock-consumer")
        self._closed = False

    async def subscribe(self, topics: Iterable[str]) -> None:
        await self._run(lambda: self.sync.subscribe(list(topics)))

    async def assign(self, partitions: Iterable[Partition] | Mapping[TopicPartition, Offset]) -> None:
        await self._run(lambda: self.sync.assign(partitions))

    async def poll(self, timeout_s: float = 1.0) -> Record[K, V] | None:
        # Only the waiting happens on the thread. Were the record handed out there, a cancelled task would lose it.
        if not self.sync.buffered:
            await self._run(lambda: self.sync.prefetch(timeout_s))
        return self.sync.poll(0.0) if self.sync.buffered else None

    async def poll_batch(self, max_records: int = BUFFERED_MAX, timeout_s: float = 1.0) -> list[Record[K, V]]:
        if not self.sync.buffered:
            await self._run(lambda: self.sync.prefetch(timeout_s))
        return self.sync.poll_batch(min(max_records, self.sync.buffered), 0.0)

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> dict[TopicPartition, int]:
        return await self._run(lambda: self.sync.commit(offsets))

    async def committed(self, partitions: Iterable[Partition] | None = None) -> dict[TopicPartition, int]:
        return await self._run(lambda: self.sync.committed(partitions))

    async def seek(self, partition: Partition, offset: Offset) -> None:
        await self._run(lambda: self.sync.seek(partition, offset))

    def metrics(self) -> dict[str, float]:
        return self.sync.metrics()

    def __aiter__(self) -> AsyncIterator[Record[K, V]]:
        return self

    async def __anext__(self) -> Record[K, V]:
        while not self._closed:
            record = await self.poll(0.5)
            if record is not None:
                return record
        raise StopAsyncIteration

    async def close(self) -> None:
        await self._close(processed=True)

    async def __aenter__(self) -> Self:
        if self._topics:
            await self.subscribe(self._topics)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(processed=exc is None)

    async def _close(self, *, processed: bool) -> None:
        if self._closed:
            return
        self._closed = True
        await self._run(lambda: self.sync._close(processed=processed))
        self._thread.shutdown(wait=False)

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)
