"""The transactional clients of a run.

A transactor writes to several partitions of the ledger in one transaction, and commits or aborts. A copier reads the
numbers and writes each to the copies, with its own position in the same transaction: exactly once, whatever happens. An
auditor reads ledger and copies at read_committed. A process that comes after a crash has the transactional id of the
one before, and fences it; now and then a second one does so while the first still works.

What is written to the copies is "number/attempt": an attempt that was aborted and the next are two values.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from penstock.base.configs.define import ResourceType
from penstock.base.errors import KafkaError
from penstock.base.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from penstock.sim.check.history import Poll, Send
from penstock.sim.options import Options
from penstock.sim.process import Process
from penstock.wire import admin, aio, fetch
from penstock.wire.fetch import Reset
from penstock.wire.group_offsets import fetch_offsets
from penstock.wire.offsets import EARLIEST, READ_COMMITTED
from penstock.wire.positions import Fetched
from penstock.wire.produce import Settings
from penstock.wire.sessions import FetchLimits
from penstock.wire.transactions import Committed, GroupMember, State, init_producer_id

if TYPE_CHECKING:
    from penstock.sim.workload import Client, Workload

LEDGER = "ledger"
COPIES = "copies"
COPIERS = GroupMember("copiers")
_LEDGER_PARTITIONS = 2
_STATE_SEGMENT_BYTES = "1500"
_REQUEST_MS = 2_000
_DELIVERY_MS = 8_000
_TIMEOUT_MS = 12_000
"""of a transaction"""
_PORTION_BATCHES = 2
"""of which what is copied in one transaction is made: several are under way at once, each fits into the smallest
segment, and all are written in time, over the slowest network"""
_UNCOPIED_MAX = 1_000
"""records that wait for the copier; then producers wait for it. A transaction takes it several times as long as a send
takes one of three producers: without a limit it had, when all was mended, thousands of records before it, and minutes
of work in which it was not stuck. With one, whoever is not done within the time of L2 is stuck"""
_COPIED_LOOK_S = 0.2
_POLL_MS = 300
_ABORTS = 0.25
_TAKES_OVER = 0.03
"""how often another producer takes the id in the middle of a transaction"""
_TRIES = 4
"""of a commit or an abort whose answer was lost"""

Work = Callable[["Client", Process], Coroutine[Any, Any, None]]


class Transacting:
    def __init__(self, workload: Workload, options: Options) -> None:
        self._workload = workload
        self._options = options
        self._attempts = 0
        self.copied_to: dict[int, int] = {}
        """partition -> how far the copier has come, as it knows"""
        self.committed_to: dict[str, int] = {}
        """partition's name -> the last offset of a transaction that its client knows to be committed"""
        self.works: dict[str, Work] = {"transactor": self._transact, "copier": self._copy, "auditor": self._audit}

    @property
    def kinds(self) -> list[str]:
        some = bool(self._options.transactors or self._options.copiers)
        return ["transactor"] * self._options.transactors + ["copier"] * self._options.copiers + ["auditor"] * some

    @property
    def copies(self) -> dict[object, object]:
        """key of a source -> key of its copy"""
        partitions = range(self._options.partitions if self._options.copiers else 0)
        return {number: f"{COPIES}-{number}" for number in partitions}

    def topics(self, configs: dict[str, str]) -> list[admin.NewTopic]:
        copies = self._options.copies
        found = []
        if self._options.transactors:
            found.append(admin.NewTopic(LEDGER, _LEDGER_PARTITIONS, copies, configs))
        if self._options.copiers:
            found.append(admin.NewTopic(COPIES, self._options.partitions, copies, configs))
        return found

    async def prepare(self, connection: aio.Client) -> None:
        """The brokers' own topics, with segments so small that they are compacted within a run."""
        if not self.kinds:
            return
        cluster = connection.cluster
        await connection.run(fetch_offsets(cluster, COPIERS.group_id, []))
        await connection.run(init_producer_id(cluster, "nobody"))
        for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            configs = {"internal.segment.bytes": _STATE_SEGMENT_BYTES, "min.cleanable.dirty.ratio": "0.1"}
            await connection.run(admin.alter_configs(cluster, ResourceType.TOPIC, topic, configs))

    def read(self) -> list[TopicPartition]:
        """What an auditor reads."""
        places = []
        if self._options.transactors:
            places += [TopicPartition(LEDGER, number) for number in range(_LEDGER_PARTITIONS)]
        if self._options.copiers:
            places += [TopicPartition(COPIES, number) for number in range(self._options.partitions)]
        return places

    async def _transact(self, client: Client, process: Process) -> None:
        while not self._workload.finishing:
            with contextlib.suppress(KafkaError):
                async with self._workload.connect(process) as connection:
                    await self._transactions(client, process, connection)
            await self._workload.think(process)

    async def _transactions(self, client: Client, process: Process, connection: aio.Client) -> None:
        """One after the other, for as long as this producer is of use."""
        producer = await self._producer(connection, client.name)
        try:
            going = True
            while going and not self._workload.finishing:
                sends = [self._draw(process.random) for _ in range(1 + process.random.randrange(4))]
                going = await self._transaction(client, process, connection, producer, sends)
                await self._workload.think(process)
        finally:
            await producer._stop()

    def _draw(self, random: Random) -> Send:
        return Send(f"{LEDGER}-{random.randrange(_LEDGER_PARTITIONS)}", str(self._workload.value()))

    async def _transaction(
        self, client: Client, process: Process, connection: aio.Client, producer: aio.Producer, sends: list[Send]
    ) -> bool:
        name = self._workload.invoke(client, "txn", sends)
        sent: list[Send] = []
        aborts = process.random.random() < _ABORTS
        try:
            producer.begin()
            await self._send(producer, sends, sent)
            if process.random.random() < _TAKES_OVER:
                await self._take_over(connection, client.name)
        except KafkaError:
            aborts = True
        return await self._end(client, name, producer, sent + sends[len(sent) :], commit=not aborts)

    async def _send(self, producer: aio.Producer, sends: list[Send], sent: list[Send]) -> None:
        padding = b"." * self._options.value_bytes
        tickets = []
        for send in sends:
            topic, _, partition = str(send.key).rpartition("-")
            value = str(send.value).encode() + padding
            tickets.append(await producer.send(topic, value, partition=int(partition)))
        for send, ticket in zip(sends, tickets, strict=True):
            offset = await producer.delivered(ticket)
            sent.append(send._replace(offset=offset))

    async def _take_over(self, connection: aio.Client, transactional_id: str) -> None:
        """Another instance of the same application starts and goes: the first is fenced from here on."""
        await (await self._producer(connection, transactional_id))._stop()

    async def _end(self, client: Client, name: str, producer: aio.Producer, sends: list[Send], *, commit: bool) -> bool:
        """False where the outcome is unknown: then whoever has the id next ends it."""
        for _ in range(_TRIES):
            try:
                await (producer.commit() if commit else producer.abort())
            except KafkaError:
                commit = commit and producer.state is not State.DOOMED
                continue
            self._workload.complete(client, name, "ok" if commit else "fail", sends)
            for key, _, offset in sends if commit else ():
                assert offset is not None  # all of it was delivered
                self.committed_to[str(key)] = max(offset, self.committed_to.get(str(key), -1))
            return True
        self._workload.complete(client, name, "info", sends)
        return False

    async def _copy(self, client: Client, process: Process) -> None:
        while not self._is_copied():
            with contextlib.suppress(KafkaError):
                async with self._workload.connect(process) as connection:
                    await self._copying(client, process, connection)
            await self._workload.think(process)

    def _is_copied(self) -> bool:
        """All that was acked."""
        return self._workload.producers_done and all(
            self.copied_to.get(partition, 0) > offset for partition, offset in self._workload.last_acked.items()
        )

    async def copied_enough(self) -> None:
        """What a copier has before it has a limit, as every queue has: until then producers wait."""
        while self._options.copiers and not self._workload.finishing and self.uncopied > _UNCOPIED_MAX:
            await asyncio.sleep(_COPIED_LOOK_S)

    @property
    def uncopied(self) -> int:
        """Records that were acked, and that the copier does not know to be copied."""
        last = self._workload.last_acked
        return sum(offset + 1 - self.copied_to.get(partition, 0) for partition, offset in last.items())

    async def _copying(self, client: Client, process: Process, connection: aio.Client) -> None:
        """From where the last transaction that was committed came to, for as long as this producer is of use."""
        producer = await self._producer(connection, client.name)
        try:
            places = [TopicPartition(self._workload.topic, number) for number in range(self._options.partitions)]
            known = await connection.run(fetch_offsets(connection.cluster, COPIERS.group_id, places))
            # The last commit may have been carried out without its answer having arrived.
            self.copied_to |= {place.partition: committed.offset for place, committed in known.items()}
            fetcher = aio.Fetcher(connection, self._reading(0))
            fetcher.assign({place: known[place].offset if place in known else EARLIEST for place in places})
            while not self._is_copied():
                fetched = await fetcher.poll(_POLL_MS)
                if fetched and not await self._copy_some(client, process, producer, fetched):
                    return
                await self._workload.think(process)
        finally:
            await producer._stop()

    async def _copy_some(
        self, client: Client, process: Process, producer: aio.Producer, fetched: list[Fetched]
    ) -> bool:
        self._attempts += 1
        sends = [
            Send(f"{COPIES}-{one.partition.partition}", f"{_number(record)}/{self._attempts}")
            for one in fetched
            for record in one.records()
        ]
        offsets = {one.partition: Committed(one.next_offset) for one in fetched}
        name = self._workload.invoke(client, "txn", sends)
        sent: list[Send] = []
        try:
            producer.begin()
            await self._send(producer, sends, sent)
            await producer.send_offsets(COPIERS, offsets)
        except KafkaError:
            await self._end(client, name, producer, sent + sends[len(sent) :], commit=False)
            return False
        if process.random.random() < _ABORTS / 5:
            await self._end(client, name, producer, sent, commit=False)
            return False
        if not await self._end(client, name, producer, sent, commit=True):
            return False
        self.copied_to |= {place.partition: committed.offset for place, committed in offsets.items()}
        return True

    async def _audit(self, client: Client, process: Process) -> None:
        """Everything that was committed, from the beginning; once finishing, to the end."""
        places = self.read()
        async with self._workload.connect(process) as connection:
            fetcher = aio.Fetcher(connection, self._reading(READ_COMMITTED))
            name = self._workload.invoke(client, "assign", keys=[str(place) for place in places])
            fetcher.assign(dict.fromkeys(places, EARLIEST))
            self._workload.complete(client, name, "ok")
            while not self._is_audited(fetcher):
                await self._audit_some(client, fetcher)
                await self._workload.think(process)

    async def _audit_some(self, client: Client, fetcher: aio.Fetcher) -> None:
        name = self._workload.invoke(client, "poll", [Poll()])
        try:
            fetched = await fetcher.poll(_POLL_MS)
        except KafkaError:
            self._workload.complete(client, name, "info")
            return
        records: dict[str, list[tuple[int, str]]] = {}
        for one in fetched:
            found = [(record.offset, _number(record)) for record in one.records()]
            if found:
                records.setdefault(str(one.partition), []).extend(found)
        self._workload.tell_read(records)
        self._workload.complete(client, name, "ok", [Poll(records)])

    def _is_audited(self, fetcher: aio.Fetcher) -> bool:
        """To the end, and not to one that is of the time before: an answer that tells of the last transaction may be
        under way for long."""
        if not self._workload.finishing or not self._workload.writers_done:
            return False
        return all(
            one.offset == one.high_watermark and one.offset > self.committed_to.get(str(place), -1)
            for place, one in fetcher.core.positions.items()
        )

    async def _producer(self, connection: aio.Client, transactional_id: str) -> aio.Producer:
        settings = Settings(
            transactional_id=transactional_id,
            transaction_timeout_ms=_TIMEOUT_MS,
            batch_bytes=self._options.portion_bytes // _PORTION_BATCHES,
            linger_ms=0,
            request_timeout_ms=_REQUEST_MS,
            delivery_timeout_ms=_DELIVERY_MS,
        )
        producer = aio.Producer(connection, settings)
        await producer.__aenter__()
        try:
            await producer.init_transactions()
        except KafkaError:
            await producer._stop()
            raise
        return producer

    def _reading(self, isolation: int) -> fetch.Settings:
        limits = FetchLimits(max_wait_ms=_POLL_MS, isolation=isolation)
        return fetch.Settings(limits=limits, partition_bytes_max=self._options.portion_bytes, reset=Reset.EARLIEST)


def _number(record: Any) -> str:
    return bytes(record.value or b"").rstrip(b".").decode()


def number_of(value: object) -> int:
    """Of which number a value in the copies was made."""
    return int(str(value).partition("/")[0])
