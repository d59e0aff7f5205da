"""The blocking shell: sockets and one selector, no threads. For Spark tasks, command lines and tests.

A client belongs to one thread. It reads from its connections only while one of its calls runs.
"""

from __future__ import annotations

import random
import secrets
import selectors
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.limits import REQUEST_BYTES_MAX
from penstock.base.ports import Buffer
from penstock.protocol.message import Message
from penstock.records.record import Header
from penstock.wire import consumer, fetch, group, produce, share_consumer, tls
from penstock.wire.addresses import parse
from penstock.wire.authentication import Login
from penstock.wire.blocking_link import Link, TlsLink
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
from penstock.wire.inbox import Allocate, zeroed
from penstock.wire.partitioners import Partitioner
from penstock.wire.positions import Fetched
from penstock.wire.security import PLAINTEXT, Security
from penstock.wire.sender import REQUEST_DATA_BYTES_MAX
from penstock.wire.share_consumer import AcknowledgeType, Shared
from penstock.wire.transactions import Committed, GroupMember, State

CONNECT_TIMEOUT_MS = 10_000
T = TypeVar("T")
Listener = Callable[[Any], None]


class Client:
    """A client of one cluster. `bootstrap`: "host:port,host:port". `security` holds for every broker of it. `allocate`:
    memory for large answers, where the caller has a cheaper kind. `run_limit_ms`: how long a talk may take with all its
    attempts, connections included; TimedOut then. A connection gets a part of it: behind brokers of the bootstrap that
    are silent, the next has its turn."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "penstock",
        response_bytes_max: int = REQUEST_BYTES_MAX,
        security: Security = PLAINTEXT,
        allocate: Allocate = zeroed,
        run_limit_ms: int | None = None,
    ) -> None:
        addresses = parse(bootstrap)
        self.cluster = Cluster(addresses)
        self._client_id = client_id
        self._response_bytes_max = response_bytes_max
        self._allocate = allocate
        self._tls = None if security.tls is None else tls.context(security.tls)
        self._login = None if security.credentials is None else Login(security.credentials, secrets.randbelow)
        self._links: dict[tuple[int, str], Link] = {}
        self._selector = selectors.DefaultSelector()
        self._chance = random.Random()
        self._run_limit_ms = run_limit_ms
        self._connect_timeout_ms = CONNECT_TIMEOUT_MS
        if run_limit_ms is not None:
            self._connect_timeout_ms = min(CONNECT_TIMEOUT_MS, run_limit_ms // (len(addresses) + 1))
        self._run_end_ms: int | None = None
        self._closed = False

    def run(self, talk: Conversation[T], listener: Listener | None = None) -> T:
        """Carry out a talk to its end; events for the application go to `listener`."""
        if self._run_limit_ms is not None:
            self._run_end_ms = _now_ms() + self._run_limit_ms
        try:
            return self._carry_through(talk, listener)
        finally:
            self._run_end_ms = None

    def _carry_through(self, talk: Conversation[T], listener: Listener | None) -> T:
        reply: Any = None
        error: KafkaError | None = None
        while True:
            try:
                effect = talk.send(reply) if error is None else talk.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]  # a generator's value comes untyped
            reply = error = None
            try:
                reply = self._carry_out(effect, listener)
            except KafkaError as refused:
                if self._is_over():
                    talk.close()
                    raise
                error = refused

    def request(self, node: int | None, message: Message, *, timeout_ms: int = 30_000) -> Any:
        """One request to one node (None: any), no retries."""
        return self._carry_out(Ask(node, message, timeout_ms=timeout_ms), None)

    def close(self) -> None:
        self._closed = True
        for key in list(self._links):
            self._drop(key, Disconnected("the client was closed"))
        self._selector.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _carry_out(self, effect: Effect, listener: Listener | None) -> Any:
        match effect:
            case Ask():
                ticket = self._begin(effect)
                while not ticket.done:
                    self._pump(None)
                return ticket.result()
            case Begin():
                return self._begin(effect.ask)
            case Await():
                return self._wait(effect.tickets, effect.timeout_ms)
            case Pause():
                return self._wait([], round(effect.after_ms * self._chance.uniform(0.8, 1.2)))
            case Now():
                return _now_ms()
            case WallClock():
                return time.time_ns() // 1_000_000
            case Chance():
                return self._chance.randrange(effect.bound)
            case Tell():
                return listener(effect.event) if listener is not None else None

    def _wait(self, tickets: list[Ticket], timeout_ms: int) -> None:
        end_ms = _now_ms() + timeout_ms
        while not any(ticket.done for ticket in tickets):
            left_ms = end_ms - _now_ms()
            if left_ms <= 0:
                self._pump(0)
                return
            self._pump(left_ms)

    def _begin(self, ask: Ask) -> Ticket:
        assert not self._closed, "the client is closed"
        ticket = Ticket()
        try:
            key = self._choose(ask), ask.channel
            link = self._link(*key)
        except KafkaError as error:
            ticket.fail(error)
            return ticket
        now_ms = _now_ms()
        if link.connection.admits(now_ms):
            link.send(ask, ticket, now_ms)
            self._serve(key, selectors.EVENT_WRITE)  # what the socket takes at once needs no look at the selector
        else:
            link.waiting.append((ask, ticket))
            link.take_outbox()
        return ticket

    def _choose(self, ask: Ask) -> int:
        if ask.node is not None:
            return ask.node
        load = {
            node: link.connection.in_flight
            for (node, channel), link in self._links.items()
            if channel == ask.channel and link.connection.ready
        }
        return self.cluster.any_node(load)

    def _link(self, node: int, channel: str) -> Link:
        broker = self.cluster.address(node)
        if broker is None:
            raise Disconnected(f"the address of node {node} is unknown")
        link = self._links.get((node, channel))
        if link is not None and link.broker[:3] != broker[:3]:
            self._drop((node, channel), Disconnected(f"node {node} has moved to {broker.host}:{broker.port}"))
            link = None
        if link is None:
            try:
                link = self._open(broker)
            except KafkaError:
                self.cluster.unreachable(node, _now_ms())
                raise
            self._links[node, channel] = link
            self._selector.register(link.socket, link.interest, (node, channel))
        return link

    def _open(self, broker: Broker) -> Link:
        connection = Connection(
            self._client_id,
            response_bytes_max=self._response_bytes_max,
            login=self._login,
            place=f"{broker.host}:{broker.port}",
            allocate=self._allocate,
        )
        if self._tls is None:
            return Link(broker, connection, _now_ms(), self._connect_timeout_ms)
        return TlsLink(broker, connection, _now_ms(), self._connect_timeout_ms, self._tls)

    def _pump(self, timeout_ms: int | None) -> None:
        """Write what can be written, read what is there; wait at most that long for something to do."""
        if self._is_over():
            raise TimedOut(f"no answer within {self._run_limit_ms} ms")
        now_ms = _now_ms()
        deadlines = [d for link in self._links.values() if (d := link.connection.deadline_ms()) is not None]
        if self._run_end_ms is not None:
            deadlines.append(self._run_end_ms)
        if deadlines:
            left_ms = max(0, min(deadlines) - now_ms)
            timeout_ms = left_ms if timeout_ms is None else min(timeout_ms, left_ms)
        assert timeout_ms is not None, "waiting for ever: no request is in flight"
        for key, link in self._links.items():
            interest = link.wanted()
            if interest != link.interest:
                link.interest = interest
                self._selector.modify(link.socket, interest, key)
        for ready, events in self._selector.select(timeout_ms / 1000):
            self._serve(ready.data, events)
        self._expire()

    def _is_over(self) -> bool:
        return self._run_end_ms is not None and _now_ms() >= self._run_end_ms

    def _serve(self, key: tuple[int, str], events: int) -> None:
        link = self._links.get(key)
        if link is None:
            return
        try:
            if events & selectors.EVENT_WRITE:
                link.write()
            if events & selectors.EVENT_READ:
                link.read()
        except BlockingIOError:
            return
        except OSError as error:
            if self._redirect(key, link):
                return
            self.cluster.unreachable(key[0], _now_ms())
            self._drop(key, link.failure(error))
            return
        except KafkaError as error:
            self._drop(key, error)
            return
        if link.connection.ready and link.waiting:
            self.cluster.reached(key[0])
            waiting, link.waiting = link.waiting, []
            for ask, ticket in waiting:
                link.send(ask, ticket, _now_ms())

    def _redirect(self, key: tuple[int, str], link: Link) -> bool:
        """Go on with the next address of the same broker, where there is one."""
        self._selector.unregister(link.socket)
        moved = link.try_next_address()
        self._selector.register(link.socket, link.interest, key)
        return moved

    def _expire(self) -> None:
        now_ms = _now_ms()
        for key, link in list(self._links.items()):
            deadline_ms = link.connection.deadline_ms()
            if deadline_ms is not None and deadline_ms <= now_ms:
                self.cluster.unreachable(key[0], now_ms)
                self._drop(key, TimedOut(f"{link.broker.host}:{link.broker.port} did not answer in time"))

    def _drop(self, key: tuple[int, str], error: KafkaError) -> None:
        link = self._links.pop(key)
        self._selector.unregister(link.socket)
        link.lost(error)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Producer:
    """Sends records or batches. Full batches leave during `send`; the rest when it lingers at the next call, at
    `flush`, `commit` or `close`, which delivers what is left; a transaction that is still open stays so."""

    def __init__(
        self, client: Client, settings: produce.Settings | None = None, partitioner: Partitioner | None = None
    ) -> None:
        self._client = client
        self.core = produce.Producer(client.cluster, settings, partitioner)

    def send(
        self,
        topic: str,
        value: Buffer | None,
        *,
        key: Buffer | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
    ) -> produce.Sent:
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        if self.core.accepts(topic):
            sent = self.core.add(topic, value, key, partition, headers, timestamp_ms, _now_ms())
        else:
            sent = self._client.run(
                self.core.send(topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms)
            )
        if self.core.has_full_batches:
            self._client.run(self.core.turn())
        return sent

    def send_batch(self, partition: TopicPartition, data: bytearray | memoryview) -> Ticket:
        """A whole batch as `records.builder` makes it."""
        ticket = self._client.run(self.core.send_batch(partition, data))
        self._client.run(self.core.turn())
        return ticket

    def send_batches(self, batches: Iterable[tuple[TopicPartition, bytearray | memoryview]]) -> Iterator[Ticket]:
        """The same for several: as many as fit leave in one request. Each is taken when there is room for it."""
        held = 0
        for partition, data in batches:
            if held and held + len(data) > REQUEST_DATA_BYTES_MAX:
                self._client.run(self.core.depart())
                held = 0
            yield self._client.run(self.core.send_batch(partition, data))
            held += len(data)
        self._client.run(self.core.depart())

    def flush(self) -> None:
        self._client.run(self.core.flush())

    def init_transactions(self) -> None:
        self._client.run(self.core.init_transactions())

    @property
    def state(self) -> State:
        """Of the transaction."""
        assert self.core.transactions is not None, "the producer has no transactional id"
        return self.core.transactions.state

    def begin(self) -> None:
        self.core.begin()

    def send_offsets(self, member: GroupMember, offsets: Mapping[TopicPartition, Committed]) -> None:
        self._client.run(self.core.send_offsets(member, offsets))

    def commit(self) -> None:
        self._client.run(self.core.commit())

    def abort(self) -> None:
        self._client.run(self.core.abort())

    def close(self) -> None:
        self._client.run(self.core.flush())


class Fetcher:
    """Reads assigned partitions without a group."""

    def __init__(self, client: Client, settings: fetch.Settings | None = None) -> None:
        self._client = client
        self.core = fetch.Fetcher(client.cluster, settings)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """A number, EARLIEST, LATEST or BY_POLICY for each partition."""
        self.core.assign(offsets)

    def poll(self, timeout_ms: int) -> list[Fetched]:
        return self._client.run(self.core.poll(timeout_ms))


class GroupConsumer:
    """Reads topics as a member of a group. `listener` is told of Assigned, Revoked and Lost. Heartbeats go out
    during `poll`: call it more often than the session times out."""

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

    def poll(self, timeout_ms: int) -> list[Fetched]:
        return self._client.run(self.core.poll(timeout_ms), self._listener)

    def commit(self, offsets: Mapping[TopicPartition, Committed] | None = None) -> None:
        """Everything that `poll` has returned, where nothing is given."""
        self._client.run(self.core.commit(offsets), self._listener)

    def committed(self) -> dict[TopicPartition, Committed]:
        return self._client.run(self.core.committed())

    def close(self) -> None:
        """Leave the group; commits nothing."""
        self._client.run(self.core.close(), self._listener)


class ShareConsumer:
    """Reads topics as a member of a share group. `listener` is told of every `share_consumer.Acknowledged`. Heartbeats
    go out during `poll`: call it more often than the session times out."""

    def __init__(self, client: Client, settings: share_consumer.Settings, listener: Listener | None = None) -> None:
        self._client = client
        self._listener = listener
        self.core = share_consumer.ShareConsumer(client.cluster, settings)

    def poll(self, timeout_ms: int) -> list[Shared]:
        return self._client.run(self.core.poll(timeout_ms), self._listener)

    def acknowledge(self, shared: Shared, types: Mapping[int, AcknowledgeType]) -> None:
        """Sent with the next `poll` or `commit`."""
        self.core.acknowledge(shared, types)

    def commit(self) -> None:
        """Everything that was acknowledged is kept or refused, as the listener is told."""
        self._client.run(self.core.commit(), self._listener)

    def close(self) -> None:
        """What was acknowledged is sent; leave the group."""
        self._client.run(self.core.close(), self._listener)
