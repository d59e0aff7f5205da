"""The producer: records or whole batches in, deliveries out; idempotent by default, transactional with an id.

Its talks drive the pure parts: `drafts` collect, `lanes` order, `sender` decides, `transactions` speak with the
coordinator. A shell runs `pump` until what it wants has happened, or `serve` for ever in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.base.ports import Buffer
from penstock.protocol.generated.produce_response import ProduceResponse
from penstock.records.batch import Codec, read_header
from penstock.records.record import Header
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Ask, Await, Conversation, Ticket, WallClock, begin, now
from penstock.wire.drafts import Draft, Drafts
from penstock.wire.errors import Disconnected
from penstock.wire.partitioners import Partitioner, RoundRobin
from penstock.wire.retries import BACKOFF
from penstock.wire.routes import know_topics, refresh
from penstock.wire.sender import Call, Delivered, Sender
from penstock.wire.transactions import Committed, GroupMember, Transactions, init_producer_id

CHANNEL = "produce"
IDLE_MS = 600_000


@dataclass(frozen=True, slots=True)
class Settings:
    acks: int = -1
    idempotent: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    batch_bytes: int = 65_536
    linger_ms: int = 5
    codec: int = Codec.NONE
    level: int | None = None
    buffer_bytes: int = 33_554_432
    """above it `send` waits until brokers have taken some."""
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    delivery_timeout_ms: int = 120_000
    create_topics: bool = False


class Sent(NamedTuple):
    """A record on its way. `ticket` is its batch's."""

    ticket: Ticket
    place: int
    """among the records of its batch, from 0."""

    @property
    def offset(self) -> int:
        """Once the ticket is done: where the record is; -1 where the broker did not say. Raises what went wrong."""
        delivered = self.ticket.result()
        assert isinstance(delivered, Delivered)
        return delivered.base_offset + self.place if delivered.base_offset >= 0 else -1


class Producer:
    def __init__(
        self, cluster: Cluster, settings: Settings | None = None, partitioner: Partitioner | None = None
    ) -> None:
        self._cluster = cluster
        self._settings = settings = settings or Settings()
        self._partitioner = partitioner or RoundRobin()
        self._drafts = Drafts(settings.batch_bytes, settings.linger_ms)
        self._sender = Sender(
            acks=settings.acks,
            idempotent=settings.idempotent,
            transactional_id=settings.transactional_id,
            request_timeout_ms=settings.request_timeout_ms,
            delivery_timeout_ms=settings.delivery_timeout_ms,
        )
        self._calls: list[Call] = []
        self._bell = Ticket()
        """rung when there is something new to send."""
        self._news = Ticket()
        """rung when the fate of a batch may have changed."""
        self._serving = False
        """a background task runs `serve`; nobody else sends or takes answers then."""
        self.transactions: Transactions | None = None
        if settings.transactional_id is not None:
            self.transactions = Transactions(
                cluster, settings.transactional_id, transaction_timeout_ms=settings.transaction_timeout_ms
            )

    def send(
        self,
        topic: str,
        value: Buffer | None,
        *,
        key: Buffer | None = None,
        partition: int | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
    ) -> Conversation[Sent]:
        """Put a record into its partition's batch. Waits for metadata of a new topic, and for room."""
        if topic not in self._cluster.topics:
            yield from know_topics(self._cluster, [topic], create_topics=self._settings.create_topics)
        if self._sender.bytes_waiting >= self._settings.buffer_bytes:
            yield from self.pump(lambda: self._sender.bytes_waiting < self._settings.buffer_bytes)
        if timestamp_ms is None:
            timestamp_ms = yield WallClock()
            assert timestamp_ms is not None
        now_ms = yield from now()
        return self.add(topic, value, key, partition, headers, timestamp_ms, now_ms)

    def accepts(self, topic: str) -> bool:
        """Whether `add` can take a record without any wait."""
        return topic in self._cluster.topics and self._sender.bytes_waiting < self._settings.buffer_bytes

    def add(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None,
        partition: int | None,
        headers: Sequence[Header],
        timestamp_ms: int,
        now_ms: int,
    ) -> Sent:
        """The same without any wait: the topic is known and there is room."""
        self._expect_open()
        if partition is None:
            partition = self._partitioner.choose(topic, key, len(self._cluster.topics[topic].partitions))
        place = TopicPartition(topic, partition)
        draft, index = self._drafts.add(place, key, value, headers, timestamp_ms, now_ms)
        if self._drafts.is_full(draft):
            self._submit(self._drafts.close(place), now_ms)
            self._partitioner.batch_closed(topic)
        elif index == 0:
            self._ring()
        return Sent(draft.ticket, index)

    def send_batch(self, partition: TopicPartition, data: bytearray | memoryview) -> Conversation[Ticket]:
        """A whole batch as `records.builder` makes it. It is ours from now on: producer fields are written into it.
        Waits for room."""
        self._expect_open()
        if self._sender.bytes_waiting >= self._settings.buffer_bytes:
            yield from self.pump(lambda: self._sender.bytes_waiting < self._settings.buffer_bytes)
        ticket = Ticket()
        self._cluster.want([partition.topic])
        self._sender.add(partition, data, read_header(data).records_count, (yield from now()), ticket)
        self._ring()
        return ticket

    @property
    def has_full_batches(self) -> bool:
        """Something waits to be sent now: a shell without a background task pumps once."""
        return bool(self._sender.partitions())

    def flush(self) -> Conversation[None]:
        """Until everything handed in so far is delivered or has failed; failures are on the tickets."""
        yield from self._close_drafts()
        yield from self.pump(self._sender.is_idle)

    def pump(self, until: Callable[[], bool]) -> Conversation[None]:
        """Send and take answers until that is so; where `serve` does the work, only wait for it."""
        while not until():
            if self._serving:
                yield Await([self._news], IDLE_MS)
                continue
            wait_ms = yield from self._round()
            if not until():
                yield Await(self._open_tickets(), wait_ms)

    def turn(self) -> Conversation[None]:
        """One round without waiting: take what has arrived, send what can be sent."""
        yield Await([], 0)
        yield from self._round()

    def depart(self) -> Conversation[None]:
        """Without waiting: take what has arrived, send all that can be sent, and give it to the network, so that it is
        on its way while the caller makes more."""
        yield Await([], 0)
        left = self._sender.batches_queued + 1
        while self._sender.batches_queued < left:
            left = self._sender.batches_queued
            yield from self._round()

    def serve(self) -> Conversation[None]:
        """For ever: what a shell with a background task runs."""
        self._serving = True
        while True:
            wait_ms = yield from self._round()
            news, self._news = self._news, Ticket()
            news.succeed()
            yield Await(self._open_tickets(), wait_ms)

    def init_transactions(self) -> Conversation[None]:
        transactions = self._transactional()
        self._sender.renew((yield from transactions.init()))
        self.use_transaction_version()

    def use_transaction_version(self) -> None:
        """Follow the rules that `transactions.version` names."""
        self._sender.implicit_partitions = self._transactional().version >= 2

    def begin(self) -> None:
        self._transactional().begin()

    def send_offsets(self, member: GroupMember, offsets: Mapping[TopicPartition, Committed]) -> Conversation[None]:
        yield from self._transactional().send_offsets(member, offsets)

    def commit(self) -> Conversation[None]:
        """Deliver all of it, then commit. Raises what made that impossible; then `abort`."""
        transactions = self._transactional()
        yield from self._close_drafts()
        yield from self.pump(self._sender.is_idle)
        if self._sender.failure is not None:
            transactions.doom(self._sender.failure)
            raise self._sender.failure
        yield from self._end(commit=True)

    def abort(self) -> Conversation[None]:
        error = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction was aborted before this was sent")
        for draft in self._drafts.close_all():
            draft.ticket.fail(error)
        self._sender.fail_waiting(error)
        while self._sender.is_flying():
            yield from self.pump(lambda: not self._sender.is_flying() or self.has_full_batches)
            self._sender.fail_waiting(error)
        yield from self._end(commit=False)

    def abandon(self) -> None:
        """The producer is closed: nothing more is sent, and what waits fails."""
        error = Disconnected("the producer was closed before this was delivered")
        for draft in self._drafts.close_all():
            draft.ticket.fail(error)
        self._sender.fail_waiting(error)

    def _end(self, *, commit: bool) -> Conversation[None]:
        transactions = self._transactional()
        before = transactions.identity
        identity = yield from transactions.end(commit=commit)
        if identity == before and self._sender.has_gap():
            identity = yield from transactions.init()
        if identity != before:
            self._sender.renew(identity)
        self._sender.failure = None

    def _round(self) -> Conversation[int]:
        """Take answers, send what can be sent; the time in ms until there is something to do without an answer."""
        yield from self._harvest()
        now_ms = yield from now()
        for draft in self._drafts.due(now_ms):
            self._submit(draft, now_ms)
            self._partitioner.batch_closed(draft.partition.topic)
        if self._bell.done:
            self._bell = Ticket()
        try:
            yield from self._prepare(now_ms)
        except KafkaError as error:
            if BACKOFF.decide(error, 0) is None:
                self._sender.fail_waiting(error)
            self._sender.expire((yield from now()))
            return BACKOFF.first_ms
        now_ms = yield from now()
        for call in self._sender.poll(self._cluster, now_ms):
            ask = Ask(
                call.node,
                call.message,
                max_version=call.max_version,
                timeout_ms=self._settings.request_timeout_ms,
                answered=call.answered,
                channel=CHANNEL,
            )
            call.ticket = yield from begin(ask)
            self._calls.append(call)
        return self._wait_ms(now_ms)

    def _prepare(self, now_ms: int) -> Conversation[None]:
        """What must be known before batches can leave: leaders, who we are, what the transaction contains."""
        waiting = self._sender.partitions()
        if not waiting:
            return
        if self._sender.leaderless(self._cluster) or self._cluster.is_stale(now_ms):
            yield from refresh(self._cluster, create_topics=self._settings.create_topics)
        if self.transactions is not None:
            yield from self.transactions.add(waiting)
        elif self._sender.needs_identity:
            self._sender.renew((yield from init_producer_id(self._cluster, None)))

    def _harvest(self) -> Conversation[None]:
        done = [call for call in self._calls if call.ticket is not None and call.ticket.done]
        if not done:
            return
        self._calls = [call for call in self._calls if call.ticket is None or not call.ticket.done]
        now_ms = yield from now()
        for call in done:
            assert call.ticket is not None
            if call.ticket.error is not None:
                self._sender.on_failure(call, call.ticket.error, self._cluster, now_ms)
                continue
            answer = call.ticket.answer
            assert answer is None or isinstance(answer, ProduceResponse)
            self._sender.on_answer(call, answer, self._cluster, now_ms)

    def _open_tickets(self) -> list[Ticket]:
        return [*(call.ticket for call in self._calls if call.ticket is not None), self._bell]

    def _wait_ms(self, now_ms: int) -> int:
        waits = [IDLE_MS]
        if (due_ms := self._drafts.next_due_ms()) is not None:
            waits.append(max(0, due_ms - now_ms))
        if (retry_ms := self._sender.retry_in_ms(now_ms)) is not None:
            waits.append(retry_ms)
        if self._sender.leaderless(self._cluster):
            waits.append(BACKOFF.first_ms)
        return min(waits)

    def _close_drafts(self) -> Conversation[None]:
        now_ms = yield from now()
        for draft in self._drafts.close_all():
            self._submit(draft, now_ms)

    def _submit(self, draft: Draft, now_ms: int) -> None:
        data = draft.seal(self._settings.codec, self._settings.level)
        self._sender.add(draft.partition, data, draft.count, now_ms, draft.ticket)
        self._ring()

    def _ring(self) -> None:
        if not self._bell.done:
            self._bell.succeed()

    def _transactional(self) -> Transactions:
        assert self.transactions is not None, "the producer has no transactional id"
        return self.transactions

    def _expect_open(self) -> None:
        if self.transactions is not None:
            self.transactions.expect_open()
