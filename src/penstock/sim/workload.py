"""The clients of a run: what they do, recorded as a history for the checker.

Producers send numbers that are unique in their partition, idempotently, with acks=all; readers read every partition
from its beginning by assign; members read as one group and commit. Each is a process of its own that may crash; then
another takes its place, under a new name. An operation whose outcome nobody knows is `info`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from random import Random
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.sim.check.history import History, Poll, Send
from penstock.sim.cluster import SimCluster, hash_seed, rack_name
from penstock.sim.consuming import Consuming
from penstock.sim.options import Options
from penstock.sim.process import Process
from penstock.sim.sharing import Sharing
from penstock.sim.transacting import Transacting, Work
from penstock.sim.world import SimClock
from penstock.wire import admin, aio, fetch, group, offsets
from penstock.wire.fetch import Reset
from penstock.wire.offsets import EARLIEST, LATEST
from penstock.wire.positions import Fetched
from penstock.wire.produce import Settings
from penstock.wire.sessions import FetchLimits

TOPIC = "numbers"
GROUP = "readers"
_REQUEST_MS = 2_000
_DELIVERY_MS = 8_000
_POLL_MS = 500
_PORTION_BYTES_MIN = 4_096
_ASKS_FOR_THE_END = 0.1
"""how often a reader asks where the log ends"""


class Client:
    """One client's place: the process in it may crash and is followed by another."""

    def __init__(self, name: str, kind: str, rack: str) -> None:
        self.name = name
        self.kind = kind
        self.rack = rack
        self.lives = 0
        self.process: Process | None = None
        self.done = False
        self.open = ""
        """the name under which an operation is open"""


class Workload:
    topic = TOPIC

    def __init__(self, cluster: SimCluster, options: Options) -> None:
        self.history = History()
        self.acked: dict[tuple[int, int], int] = {}
        """(partition, offset) -> value, for every send that was acked"""
        self.on_ack: Any = None
        """called with (partition, offset, value) as a client learns of it"""
        self.on_read: Any = None
        """called with (partition's name, offset, value) of every record that a consumer was handed"""
        self.on_source: Callable[[str, int], None] = lambda rack, node_id: None
        """called with (reader's rack, broker) as records arrive"""
        self.on_commit: Any = None
        """called with (group, partition, offset) as a client learns that it is committed"""
        self.on_owned: Callable[[str, str, str, Iterable[TopicPartition]], None] = lambda *of: None
        """called with (group, client, member id, partitions) as who is in a consumer group reads others than before"""
        self.on_accepted: Callable[[str, str, int], None] = lambda *of: None
        """called with (group, partition's name, offset) as a member of a share group learns that it is done with it"""
        self.committed: dict[tuple[str, int], int] = {}
        """(group, partition) -> how far the group has come, as its members know"""
        self.finishing = False
        """producers stop; readers and members read to the end, and stop"""
        self.ready = False
        """the topic is there"""
        self._cluster = cluster
        self._loop = cluster.loop
        self._options = options
        self._clock = SimClock(cluster.loop)
        self._random = Random(f"clients {options.seed}")
        self._next_value = 0
        self.last_acked: dict[int, int] = {}
        kinds = ["producer"] * options.producers + ["reader"] * options.readers + ["member"] * options.members
        self._transacting = Transacting(self, options)
        self._consuming = Consuming(self, options.consumers)
        self._sharing = Sharing(self, options)
        kinds += self._transacting.kinds + self._consuming.kinds + self._sharing.kinds
        self.clients = [
            Client(f"client-{number}", kind, rack_name(number, options.racks)) for number, kind in enumerate(kinds, 1)
        ]
        cluster.network.racks.update({client.name: client.rack for client in self.clients})

    @property
    def hosts(self) -> list[str]:
        return [client.name for client in self.clients]

    @property
    def done(self) -> bool:
        return all(client.done for client in self.clients)

    @property
    def copies(self) -> dict[Any, Any]:
        """key of a source -> key of its copy"""
        return self._transacting.copies

    @property
    def uncopied(self) -> int:
        """records that were acked and wait for the copier"""
        return self._transacting.uncopied

    @property
    def unfinished(self) -> str:
        return ", ".join(f"{client.name} ({client.kind})" for client in self.clients if not client.done)

    def setup(self) -> None:
        """Make the topic, then begin."""
        process = Process("admin", "admin", hash_seed(self._options.seed, 0))
        self._loop.spawn(process, self._create(process))

    def begin(self) -> None:
        for client in self.clients:
            self._start(client)

    def finish(self) -> None:
        """The liveness phase: one more reader must see it all."""
        self.finishing = True
        rack = next(node.rack for node in self._cluster.nodes if not node.lost)
        kinds = ["reader"] + ["auditor"] * bool(self._transacting.kinds)
        for kind in kinds:
            last = Client(f"client-last-{kind}", kind, rack)
            self._cluster.network.racks[last.name] = rack
            self.clients.append(last)
            self._start(last)

    def crash_one(self) -> None:
        """A client's process dies, and another takes its place."""
        client = self._random.choice(self.clients)
        if client.process is None or client.done:
            return
        self._cluster.network.kill(client.process)
        client.process.die()
        self._retire(client)
        self._start(client)

    def lose_rack(self, rack: str) -> None:
        """The clients there are gone for good."""
        for client in self.clients:
            if client.rack == rack and client.process is not None and not client.done:
                self._cluster.network.power_off(client.process)
                client.process.die()
                self._retire(client)
                client.done = True

    def _start(self, client: Client) -> None:
        client.lives += 1
        seed = hash_seed(self._options.seed, self.clients.index(client) + 100, client.lives)
        client.process = Process(client.name, client.name, seed)
        works: dict[str, Work] = {"producer": self._produce, "reader": self._read, "member": self._take_part}
        works |= self._transacting.works | self._consuming.works | self._sharing.works
        work = works[client.kind]
        self._loop.spawn(client.process, self._live(client, client.process, work(client, client.process)))

    async def _live(self, client: Client, process: Process, work: Coroutine[Any, Any, None]) -> None:
        await work
        client.done = True

    def connect(self, process: Process) -> aio.Client:
        return aio.Client(
            self._cluster.bootstrap,
            client_id=process.name,
            chance=process.random.randrange,
            wall_ms=self._clock.wall_ms,
        )

    async def _create(self, process: Process) -> None:
        options = self._options
        configs = {
            "internal.segment.bytes": str(options.segment_bytes),
            "min.insync.replicas": str(options.min_insync),
            "retention.ms": "-1",
            "file.delete.delay.ms": "100",
        }
        if options.flush:
            configs["flush.messages"] = "1"
        topics = [admin.NewTopic(TOPIC, options.partitions, options.copies, configs)]
        topics += self._transacting.topics(configs)
        while not self.ready:
            try:
                async with self.connect(process) as client:
                    with _present():
                        await client.run(admin.create_topics(client.cluster, topics, timeout_ms=5_000))
                    await self._transacting.prepare(client)
                    await self._sharing.prepare(client)
                    self.ready = True
            except KafkaError:
                await asyncio.sleep(0.1)

    async def _produce(self, client: Client, process: Process) -> None:
        settings = Settings(
            linger_ms=process.random.choice((0, 2)),
            request_timeout_ms=_REQUEST_MS,
            delivery_timeout_ms=_DELIVERY_MS,
        )
        while not self.finishing:
            async with self.connect(process) as connection:
                producer = aio.Producer(connection, settings)
                await producer.__aenter__()
                try:
                    while not self.finishing and await self._send(client, process, producer):
                        await self.think(process)
                        await self._transacting.copied_enough()
                finally:
                    await producer._stop()
            await self.think(process)

    async def _send(self, client: Client, process: Process, producer: aio.Producer) -> bool:
        """One operation. False where its outcome is unknown, and this producer is of no more use."""
        random = process.random
        partition = random.randrange(self._options.partitions)
        values = [self.value() for _ in range(1 + random.randrange(self._options.batch))]
        name = self.invoke(client, "send", [Send(partition, value) for value in values])
        padding = b"." * self._options.value_bytes
        sent: list[Send] = []
        try:
            tickets = [await producer.send(TOPIC, b"%d%b" % (value, padding), partition=partition) for value in values]
            for value, ticket in zip(values, tickets, strict=True):
                offset = await producer.delivered(ticket)
                sent.append(Send(partition, value, offset))
                self._ack(partition, offset, value)
        except KafkaError:
            sent += [Send(partition, value) for value in values[len(sent) :]]
            self.complete(client, name, "info", sent)
            return False
        self.complete(client, name, "ok", sent)
        return True

    async def _read(self, client: Client, process: Process) -> None:
        """Everything from the beginning; once finishing, to the end."""
        settings = self.fetch_settings(client)
        places = [TopicPartition(TOPIC, number) for number in range(self._options.partitions)]
        async with self.connect(process) as connection:
            fetcher = aio.Fetcher(connection, settings)
            self.invoke(client, "assign", keys=range(self._options.partitions))
            fetcher.assign(dict.fromkeys(places, EARLIEST))
            self.complete(client, self._name(client), "ok")
            while not await self._at_end(fetcher):
                await self.poll(client, fetcher)
                await self.think(process)
                if process.random.random() < _ASKS_FOR_THE_END:
                    await self._ask_for_the_end(connection, places)

    async def _ask_for_the_end(self, connection: aio.Client, places: list[TopicPartition]) -> None:
        """As lag is measured; what it is told is judged where it is told."""
        wanted = offsets.list_offsets(connection.cluster, dict.fromkeys(places, LATEST), timeout_ms=_REQUEST_MS)
        with contextlib.suppress(KafkaError):
            await connection.run(wanted)

    async def _at_end(self, fetcher: aio.Fetcher) -> bool:
        if not self.finishing or not self.producers_done:
            return False
        for place, position in fetcher.core.positions.items():
            if (
                position.offset <= self.last_acked.get(place.partition, -1)
                or position.high_watermark != position.offset
            ):
                return False
        return True

    async def _take_part(self, client: Client, process: Process) -> None:
        """As a member of the group; leaves and comes back now and then."""
        while not self.finishing:
            async with self.connect(process) as connection:
                rebalanced: dict[int, None] = {}
                consumer = aio.GroupConsumer(
                    connection,
                    group.Settings(
                        GROUP, (TOPIC,), session_timeout_ms=6_000, rebalance_timeout_ms=3_000, heartbeat_interval_ms=500
                    ),
                    self.fetch_settings(client),
                    partial(_note_moves, rebalanced),
                )
                self.subscribe(client)
                stays = True
                while stays and not self.finishing:
                    stays = await self.poll(client, consumer, GROUP, rebalanced) and process.random.random() < 0.98
                    await self.think(process)
                try:
                    await consumer.close()
                except KafkaError:
                    await self.think(process)

    def subscribe(self, client: Client) -> None:
        self.invoke(client, "subscribe", keys=range(self._options.partitions))
        self.complete(client, self._name(client), "ok")

    async def poll(
        self,
        client: Client,
        consumer: aio.Fetcher | aio.GroupConsumer,
        group_id: str = "",
        rebalanced: dict[int, None] | None = None,
    ) -> bool:
        """One operation; a member of a group commits what it was handed. False where its outcome is unknown."""
        name = self.invoke(client, "poll", [Poll()])
        try:
            fetched = await consumer.poll(_POLL_MS)
            if isinstance(consumer, aio.GroupConsumer) and fetched:
                await self.commit(consumer, group_id)
        except KafkaError:
            self.complete(client, name, "info")
            return False
        for one in fetched:
            self.on_source(client.rack, one.node)
        moved = list(rebalanced or ())
        if rebalanced:
            rebalanced.clear()
        records = _records(fetched)
        self.tell_read({f"{TOPIC}-{partition}": found for partition, found in records.items()})
        self.complete(client, name, "ok", [Poll(records)], moved)
        return True

    async def commit(self, consumer: aio.GroupConsumer, group_id: str) -> None:
        positions = consumer.core.positions()
        await consumer.commit(positions)
        for place, committed in positions.items():
            key = (group_id, place.partition)
            self.committed[key] = max(committed.offset, self.committed.get(key, 0))
            if self.on_commit is not None:
                self.on_commit(group_id, place, committed.offset)

    def tell_read(self, records: Mapping[str, Iterable[tuple[int, object]]]) -> None:
        if self.on_read is not None:
            for name, found in records.items():
                for offset, value in found:
                    self.on_read(name, offset, value)

    def fetch_settings(self, client: Client) -> fetch.Settings:
        rack = client.rack if self._options.racks else ""
        limits = FetchLimits(max_wait_ms=_POLL_MS, rack=rack)
        portion_bytes = max(_PORTION_BYTES_MIN, self._options.portion_bytes)
        return fetch.Settings(limits=limits, partition_bytes_max=portion_bytes, reset=Reset.EARLIEST)

    async def think(self, process: Process) -> None:
        await asyncio.sleep(process.random.random() * self._options.think_ms / 1000)

    @property
    def producers_done(self) -> bool:
        return all(client.done for client in self.clients if client.kind == "producer")

    @property
    def writers_done(self) -> bool:
        """Those that write to what auditors read."""
        return all(client.done for client in self.clients if client.kind in ("transactor", "copier"))

    def value(self) -> int:
        self._next_value += 1
        return self._next_value

    def _ack(self, partition: int, offset: int, value: int) -> None:
        self.acked[partition, offset] = value
        self.last_acked[partition] = max(offset, self.last_acked.get(partition, -1))
        if self.on_ack is not None:
            self.on_ack(partition, offset, value)

    def _name(self, client: Client) -> str:
        return f"{client.name}.{client.lives}"

    def invoke(self, client: Client, function: Any, micros: Any = (), keys: Any = ()) -> str:
        name = self._name(client)
        self.history.invoke(name, function, self._loop.now_us * 1000, micros, keys)
        client.open = name
        return name

    def complete(self, client: Client, name: str, type: Any, micros: Any = None, moved: Any = ()) -> None:
        self.history.complete(name, type, self._loop.now_us * 1000, micros, moved)
        client.open = ""
        if type == "info":
            client.lives += 1

    def note(self, name: str, function: Any, micros: Any) -> None:
        """An operation that is not its client's only one."""
        self.history.invoke(name, function, self._loop.now_us * 1000, micros)

    def conclude(self, name: str, type: Any) -> None:
        self.history.complete(name, type, self._loop.now_us * 1000)

    def _retire(self, client: Client) -> None:
        """What a crashed client was doing, nobody knows."""
        if client.open:
            self.history.complete(client.open, "info", self._loop.now_us * 1000)
            client.open = ""


@contextlib.contextmanager
def _present() -> Iterator[None]:
    """What is there already need not be made."""
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


def _note_moves(rebalanced: dict[int, None], event: group.Assigned | group.Revoked | group.Lost) -> None:
    rebalanced.update({one.partition: None for one in event.partitions})


def _records(fetched: list[Fetched]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for one in fetched:
        records = [(record.offset, int(bytes(record.value or b"").rstrip(b"."))) for record in one.records()]
        if records:
            found.setdefault(one.partition.partition, []).extend(records)
    return found
