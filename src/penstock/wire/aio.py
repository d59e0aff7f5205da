"""The asyncio shell: for broker processes, tests and the simulator, which brings its own loop, chance and connections.

Large answers are received in place (`asyncio.BufferedProtocol`). Everything happens on the loop that runs the calls;
`close` leaves neither a task nor a socket behind.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar, cast

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.limits import REQUEST_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.protocol.message import Message
from penstock.records.record import Header
from penstock.wire import consumer, fetch, group, produce, share_consumer, tls
from penstock.wire.addresses import parse
from penstock.wire.authentication import Login
from penstock.wire.cluster import Broker, Cluster
from penstock.wire.connection import Connection
from penstock.wire.conversation import (
    Ask,
    Await,
    Begin,
    Chance,
    Conversation,
    Effect,
    Now,
    Pause,
    Tell,
    Ticket,
    WallClock,
)
from penstock.wire.errors import Disconnected, TimedOut
from penstock.wire.partitioners import Partitioner
from penstock.wire.positions import Fetched
from penstock.wire.security import PLAINTEXT, Security
from penstock.wire.share_consumer import AcknowledgeType, Shared
from penstock.wire.transactions import Committed, GroupMember, State
from penstock.wire.within import Arrival, arrival, unpace

T = TypeVar("T")
Listener = Callable[[Any], Any]

CONNECT_TIMEOUT_MS = 10_000


class _Link(asyncio.BufferedProtocol):
    """One connection as a protocol, with what waits for it to be ready."""

    def __init__(self, client: Client, node: int, broker: Broker, connection: Connection) -> None:
        self.broker = broker
        self.connection = connection
        self.waiting: list[tuple[Ask, Ticket]] = []
        self.closed = False
        self._client = client
        self._node = node
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._arrival: Arrival | None = None
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """done once the socket is closed."""

    async def open(self, context: ssl.SSLContext | None) -> None:
        host, port = self.broker.host, self.broker.port
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                await self._connect(host, port, {} if context is None else {"ssl": context, "server_hostname": host})
        except (OSError, TimeoutError, UnicodeError) as error:  # the last: a host that no name can have
            self.fail(tls.failure(f"{host}:{port}", error))
            self._is_gone()
        except asyncio.CancelledError:
            # Where the socket was connected already, uvloop closes it and does not tell the protocol.
            self._is_gone()
            raise

    async def _connect(self, host: str, port: int, security: dict[str, Any]) -> None:
        """The name is looked up here: uvloop leaves the question behind where its `create_connection` is cancelled, and
        complains of an answer that nobody waits for."""
        places = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for at, (*_, address) in enumerate(places, 1):
            try:
                await self._loop.create_connection(lambda: self, str(address[0]), port, **security)
                return
            except OSError:
                if at == len(places):
                    raise

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport of TLS is one without being a subclass.
        self._transport = opened = cast(asyncio.Transport, transport)
        if self.closed:
            opened.abort()
            return
        connected = opened.get_extra_info("socket")
        unpace(connected)
        if opened.get_extra_info("sslcontext") is None:  # TLS reads ahead: what it has is not missing
            self._arrival = arrival(connected)
        opened.write(self.connection.start(self._client.now_ms(), CONNECT_TIMEOUT_MS))
        self._watch()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.connection.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self.connection.filled(nbytes)
        except KafkaError as error:
            self.fail(error)
            return
        if self._arrival is not None:
            self._arrival.missing(self.connection.missing_bytes)
        if self.connection.outbox:
            self._write_outbox()
        if self.waiting and self.connection.ready:
            self._client.cluster.reached(self._node)
            waiting, self.waiting = self.waiting, []
            for ask, ticket in waiting:
                self.send(ask, ticket, self._client.now_ms())

    def connection_lost(self, exc: Exception | None) -> None:
        place = f"{self.broker.host}:{self.broker.port}"
        if isinstance(exc, ssl.SSLError):
            self.fail(tls.failure(place, exc))
        else:
            self.fail(Disconnected(f"{place}: {exc or 'the broker closed the connection'}"))
        self._transport = None
        self._arrival = None
        self._is_gone()

    def _is_gone(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    def submit(self, ask: Ask, ticket: Ticket) -> None:
        now_ms = int(self._loop.time() * 1000)
        if self.connection.admits(now_ms):
            self.send(ask, ticket, now_ms)
        else:
            self.waiting.append((ask, ticket))
            if self.connection.outbox:
                self._write_outbox()
                self._watch()

    def send(self, ask: Ask, ticket: Ticket, now_ms: int) -> None:
        assert self._transport is not None
        try:
            data = self.connection.send(
                ask.message,
                ticket,
                now_ms=now_ms,
                timeout_ms=ask.timeout_ms,
                max_version=ask.max_version,
                answered=ask.answered,
                decode=ask.decode,
            )
        except KafkaError as error:
            ticket.fail(error)
            return
        self._transport.write(data)
        if self._alarm is None or self._alarm.when() * 1000 > now_ms + ask.timeout_ms:
            self._watch()
        if not ask.answered:
            ticket.succeed()

    def _write_outbox(self) -> None:
        """What the connection itself has to say."""
        assert self._transport is not None
        for data in self.connection.outbox:
            self._transport.write(data)
        self.connection.outbox.clear()

    def fail(self, error: KafkaError) -> None:
        """Of no more use: everything that waits fails, the socket is closed."""
        if self.closed:
            return
        self.closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        if isinstance(error, (Disconnected, TimedOut)):
            self._client.cluster.unreachable(self._node, self._client.now_ms())
        if self._transport is not None:
            self._transport.abort()
        waiting, self.waiting = self.waiting, []
        self.connection.lost(error)
        for _, ticket in waiting:
            ticket.fail(error)

    def _watch(self) -> None:
        """Keep one alarm for the earliest deadline. It is not moved when answers arrive, only checked when it rings."""
        deadline_ms = self.connection.deadline_ms()
        if deadline_ms is None:
            return
        if self._alarm is not None and not self._alarm.cancelled():
            if self._alarm.when() * 1000 <= deadline_ms:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(deadline_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        deadline_ms = self.connection.deadline_ms()
        if deadline_ms is not None and deadline_ms <= self._client.now_ms():
            self.fail(TimedOut(f"{self.broker.host}:{self.broker.port} did not answer in time"))
        else:
            self._watch()


class Client:
    """A client of one cluster. `bootstrap`: "host:port,host:port". `security` holds for every broker of it.
    `chance(bound)` and `wall_ms()` may be given."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "penstock",
        response_bytes_max: int = REQUEST_BYTES_MAX,
        security: Security = PLAINTEXT,
        chance: Callable[[int], int] | None = None,
        wall_ms: Callable[[], int] | None = None,
    ) -> None:
        self.cluster = Cluster(parse(bootstrap))
        self._client_id = client_id
        self._response_bytes_max = response_bytes_max
        self._chance = chance or random.Random().randrange
        self._tls = None if security.tls is None else tls.context(security.tls)
        below = chance or secrets.randbelow
        self._login = None if security.credentials is None else Login(security.credentials, below)
        self.wall_ms = wall_ms or (lambda: time.time_ns() // 1_000_000)
        self._links: dict[tuple[int, str], _Link] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False

    @staticmethod
    def now_ms() -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def run(self, talk: Conversation[T], listener: Listener | None = None) -> T:
        """Carry out a talk to its end; events for the application go to `listener`, which may be a coroutine."""
        reply: Any = None
        error: KafkaError | None = None
        try:
            while True:
                try:
                    effect = talk.send(reply) if error is None else talk.throw(error)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]  # a generator's value comes untyped
                reply = error = None
                try:
                    # What takes no time needs no coroutine; most effects are of these two kinds.
                    if type(effect) is Now:
                        reply = self.now_ms()
                    elif type(effect) is Begin:
                        reply = self.begin(effect.ask)
                    else:
                        reply = await self._carry_out(effect, listener)
                except KafkaError as refused:
                    error = refused
        finally:
            talk.close()

    async def request(self, node: int | None, message: Message, *, timeout_ms: int = 30_000, channel: str = "") -> Any:
        """One request to one node (None: any), no retries."""
        return await self.finish(self.begin(Ask(node, message, timeout_ms=timeout_ms, channel=channel)))

    def begin(self, ask: Ask) -> Ticket:
        """Send without waiting."""
        ticket = Ticket()
        if self._closed:  # by whoever shares it, after this asker had picked it
            ticket.fail(Disconnected("the client was closed"))
            return ticket
        try:
            link = self._link(self._choose(ask) if ask.node is None else ask.node, ask.channel)
        except KafkaError as error:
            ticket.fail(error)
        else:
            link.submit(ask, ticket)
        return ticket

    def is_connected(self, channel: str = "") -> bool:
        """Whether a connection of the channel is open, or being made."""
        return any(not link.closed for (_, of), link in self._links.items() if of == channel)

    def is_ready(self, channel: str = "") -> bool:
        """Whether a connection of the channel takes requests at once."""
        return any(link.connection.ready and not link.closed for (_, of), link in self._links.items() if of == channel)

    async def close(self) -> None:
        self._closed = True
        links = list(self._links.values())
        self._links.clear()
        for link in links:
            link.fail(Disconnected("the client was closed"))
        for task in list(self._opening):
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        for link in links:
            if link._transport is not None:
                await link.gone

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _carry_out(self, effect: Effect, listener: Listener | None) -> Any:
        match effect:
            case Ask():
                return await self.finish(self.begin(effect))
            case Await():
                await self._wait(effect.tickets, effect.timeout_ms)
            case Pause():
                await asyncio.sleep(effect.after_ms * (80 + self._chance(41)) / 100_000)
            case WallClock():
                return self.wall_ms()
            case Chance():
                return self._chance(effect.bound)
            case Tell():
                told = listener(effect.event) if listener is not None else None
                return await told if inspect.isawaitable(told) else told
        return None

    async def finish(self, ticket: Ticket) -> Any:
        if not ticket.done:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ticket.listen(lambda: None if future.done() else future.set_result(None))
            await future
        return ticket.result()

    async def _wait(self, tickets: list[Ticket], timeout_ms: int) -> None:
        if any(ticket.done for ticket in tickets):
            return
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[None] = loop.create_future()

        def ring() -> None:
            if not rung.done():
                rung.set_result(None)

        for ticket in tickets:
            ticket.listen(ring)
        alarm = loop.call_later(timeout_ms / 1000, ring)
        try:
            await rung
        finally:
            alarm.cancel()
            for ticket in tickets:
                ticket.forget(ring)

    def _choose(self, ask: Ask) -> int:
        """A node for what any of them can answer."""
        load = {
            node: link.connection.in_flight
            for (node, channel), link in self._links.items()
            if channel == ask.channel and link.connection.ready
        }
        return self.cluster.any_node(load)

    def _link(self, node: int, channel: str) -> _Link:
        broker = self.cluster.address(node)
        if broker is None:
            raise Disconnected(f"the address of node {node} is unknown")
        link = self._links.get((node, channel))
        if link is not None and link.broker is not broker and link.broker[:3] != broker[:3]:
            link.fail(Disconnected(f"node {node} has moved to {broker.host}:{broker.port}"))
        if link is None or link.closed:
            connection = Connection(
                self._client_id,
                response_bytes_max=self._response_bytes_max,
                login=self._login,
                place=f"{broker.host}:{broker.port}",
            )
            link = self._links[node, channel] = _Link(self, node, broker, connection)
            task = asyncio.get_running_loop().create_task(link.open(self._tls))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        return link


class Producer:
    """Sends records or batches from a background task. `async with` it: leaving flushes, unless by an error."""

    def __init__(
        self, client: Client, settings: produce.Settings | None = None, partitioner: Partitioner | None = None
    ) -> None:
        self._client = client
        self.core = produce.Producer(client.cluster, settings, partitioner)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Producer:
        self._task = asyncio.get_running_loop().create_task(self._client.run(self.core.serve()))
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await self.flush()
        finally:
            await self._stop()

    async def send(
        self,
        topic: str,
        value: Buffer | None,
        *,
        key: Buffer | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
    ) -> produce.Sent:
        """Returns once the record is in its batch; `await delivered(sent)` for the offset."""
        if timestamp_ms is None:
            timestamp_ms = self._client.wall_ms()
        if self.core.accepts(topic):
            sent = self.core.add(topic, value, key, partition, headers, timestamp_ms, self._client.now_ms())
        else:
            sent = await self._client.run(
                self.core.send(topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms)
            )
        if self.core.has_full_batches:
            await asyncio.sleep(0)  # or a loop of sends would keep the sending task from its turn
        return sent

    async def send_batch(self, partition: TopicPartition, data: bytearray | memoryview) -> Ticket:
        """A whole batch as `records.builder` makes it."""
        return await self._client.run(self.core.send_batch(partition, data))

    async def delivered(self, sent: produce.Sent) -> int:
        """The record's offset, once it is known."""
        await self._client.finish(sent.ticket)
        return sent.offset

    async def flush(self) -> None:
        await self._client.run(self.core.flush())

    async def init_transactions(self) -> None:
        await self._client.run(self.core.init_transactions())

    @property
    def state(self) -> State:
        """Of the transaction."""
        assert self.core.transactions is not None, "the producer has no transactional id"
        return self.core.transactions.state

    def begin(self) -> None:
        self.core.begin()

    async def send_offsets(self, member: GroupMember, offsets: Mapping[TopicPartition, Committed]) -> None:
        await self._client.run(self.core.send_offsets(member, offsets))

    async def commit(self) -> None:
        await self._client.run(self.core.commit())

    async def abort(self) -> None:
        await self._client.run(self.core.abort())

    async def _stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.core.abandon()


class Fetcher:
    """Reads assigned partitions without a group."""

    def __init__(self, client: Client, settings: fetch.Settings | None = None) -> None:
        self._client = client
        self.core = fetch.Fetcher(client.cluster, settings)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A number, EARLIEST, LATEST or BY_POLICY for each partition."""
        self.core.assign(offsets)

    async def poll(self, timeout_ms: int) -> list[Fetched]:
        return await self._client.run(self.core.poll(timeout_ms))


class GroupConsumer:
    """Reads topics as a member of a group. `listener` is told of Assigned, Revoked and Lost; it may be a coroutine.
    Heartbeats go out during `poll`: call it more often than the session times out."""

    def __init__(
        self,
        client: Client,
        member: group.Settings,
        fetching: fetch.Settings | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._client = client
        self._listener = listener
        self.core = consumer.GroupConsumer(client.cluster, member, fetching)

    @property
    def assignment(self) -> list[TopicPartition]:
        return self.core.assignment

    async def poll(self, timeout_ms: int) -> list[Fetched]:
        return await self._client.run(self.core.poll(timeout_ms), self._listener)

    async def commit(self, offsets: Mapping[TopicPartition, Committed] | None = None) -> None:
        """Everything that `poll` has returned, where nothing is given."""
        await self._client.run(self.core.commit(offsets), self._listener)

    async def committed(self) -> dict[TopicPartition, Committed]:
        return await self._client.run(self.core.committed())

    async def close(self) -> None:
        """Leave the group; commits nothing."""
        await self._client.run(self.core.close(), self._listener)


class ShareConsumer:
    """Reads topics as a member of a share group. `listener` is told of every `share_consumer.Acknowledged`; it may be a
    coroutine. Heartbeats go out during `poll`: call it more often than the session times out."""

    def __init__(self, client: Client, settings: share_consumer.Settings, listener: Listener | None = None) -> None:
        self._client = client
        self._listener = listener
        self.core = share_consumer.ShareConsumer(client.cluster, settings)

    async def poll(self, timeout_ms: int) -> list[Shared]:
        return await self._client.run(self.core.poll(timeout_ms), self._listener)

    def acknowledge(self, shared: Shared, types: Mapping[int, AcknowledgeType]) -> None:
        """Sent with the next `poll` or `commit`."""
        self.core.acknowledge(shared, types)

    async def commit(self) -> None:
        """Everything that was acknowledged is kept or refused, as the listener is told."""
        await self._client.run(self.core.commit(), self._listener)

    async def close(self) -> None:
        """What was acknowledged is sent; leave the group."""
        await self._client.run(self.core.close(), self._listener)
