"""Tables into topics: rows to partitions, partitions to batches, batches to their leaders; plain or in transactions.

A writer belongs to one thread and sends while one of its calls runs. Rows wait until there are enough for good batches;
`flush`, `commit` and `close` send what is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.columnar import encode_kernels as kernels
from penstock.columnar.cells import records_of
from penstock.columnar.encode import BATCH_BYTES, Encoder
from penstock.columnar.placement import Placement
from penstock.columnar.settings import Options
from penstock.records.batch import Codec
from penstock.wire.admin import TOPIC, describe_configs
from penstock.wire.blocking import Client, Producer
from penstock.wire.conversation import Conversation, Ticket, WallClock
from penstock.wire.group_offsets import fetch_offsets
from penstock.wire.produce import Settings
from penstock.wire.routes import know_topics
from penstock.wire.sender import Delivered
from penstock.wire.transactions import Committed, GroupMember, State

PENDING_BYTES = 1_835_008
"""bytes of rows that are gathered before they are cut into batches. A caller's batch of 2 MB is taken as it is, without
a copy, and stays in the processor's cache from one step to the next."""
PENDING_BYTES_MAX = 8_388_608
PENDING_BYTES_A_PARTITION = 262_144
"""where a topic has many partitions, more rows are gathered, so that their batches are not small."""
REQUEST_BYTES_MAX = 1_048_576
"""bytes of one batch at most; `max.request.size`, and what brokers take where nobody told them otherwise."""

_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}

GroupOffsets = Mapping[str, Mapping[TopicPartition, int | Committed]]


class TopicWriter:
    """Writes rows with the columns value and, where there are any, key, headers, partition, timestamp and topic.

    `topic` is for rows without a topic column, and wins where there is one. A null partition is chosen by the key as
    Kafka's default partitioner does, without a key in runs as long as a batch. With acks=all each batch is in the log
    once, whatever has to be sent again. A batch that fails raises its KafkaError at the next call."""

    def __init__(
        self,
        bootstrap: str,
        config: Mapping[str, str] | None = None,
        *,
        topic: str | None = None,
        transactional_id: str | None = None,
        acks: str = "all",
        client: Client | None = None,
    ) -> None:
        options = Options(config or {})
        settings = _settings(options, options.text("acks", acks), transactional_id)
        self._topic = topic
        self._max_block_ms = options.number("max.block.ms", 60_000)
        self._batch_bytes = min(
            options.number("batch.size", BATCH_BYTES), options.number("max.request.size", REQUEST_BYTES_MAX)
        )
        self._compression = settings.codec, settings.level
        self._numbered = settings.idempotent
        self._owns_client = client is None
        self._client = client or options.client(bootstrap)
        self._producer = Producer(self._client, settings)
        self._transactional = transactional_id is not None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._gathered_bytes = PENDING_BYTES
        """bytes of rows at which they are sent."""
        self._tickets: deque[Ticket] = deque()
        self._placement = Placement()
        self._encoders: dict[str, Encoder] = {}
        self.rows = 0
        """rows that were handed in."""
        self.ends: dict[TopicPartition, int] = {}
        """by partition, the offset after the last row that a broker said it has."""

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Hand in rows; waits only where brokers take them slower than they come."""
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
            if not batch.num_rows:
                continue
            if self._pending and self._pending[0].schema != batch.schema:
                self._send_pending()
            self._pending.append(batch)
            self._pending_bytes += batch.nbytes
            self.rows += batch.num_rows
            if self._pending_bytes >= self._gathered_bytes:
                self._send_pending()

    def flush(self) -> None:
        """Until every row is acknowledged; raises the first failure."""
        self._send_pending()
        self._producer.flush()
        self._collect()

    def forget_topics(self) -> None:
        """Between two pieces of work that may lie far apart: ask anew which topics there are, and how many partitions
        they have."""
        self._client.cluster.topics.clear()
        self._client.cluster.names.clear()

    def init(self) -> None:
        """Take the transactional id: others that use it are fenced, what they left open is aborted."""
        self._producer.init_transactions()

    def begin(self) -> None:
        """A new transaction; takes the transactional id first where that was not done."""
        if self._producer.state is State.UNINITIALIZED:
            self.init()
        self._producer.begin()

    def commit(self, offsets: GroupOffsets | None = None) -> None:
        """Deliver every row, commit these offsets of these groups with them, and end the transaction. Where that fails
        by a lost connection or a timeout it is open how it ended: call it again. After any other failure, abort."""
        self.flush()
        for group, positions in (offsets or {}).items() if self._producer.state is State.OPEN else ():
            committed = {
                TopicPartition(*place): offset if isinstance(offset, Committed) else Committed(offset)
                for place, offset in positions.items()
            }
            self._producer.send_offsets(GroupMember(group), committed)
        self._producer.commit()

    def abort(self) -> None:
        """End the transaction without a trace for readers of committed records. Nothing is done where none is open."""
        self._pending, self._pending_bytes = [], 0
        self._tickets.clear()
        if self._producer.state in (State.OPEN, State.DOOMED, State.ABORTING):
            self._producer.abort()

    def committed(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Committed]:
        """What a group has committed of these partitions; waits for transactions that are committing offsets of them
        just now. They must be named: asked for all there are, a broker leaves out the first commit of a partition while
        its transaction ends."""
        return self._client.run(fetch_offsets(self._client.cluster, group, partitions, require_stable=True))

    def close(self, *, abandon: bool = False) -> None:
        """Send what is left, unless it is abandoned. A transaction that is still open stays so: end it before."""
        try:
            if not abandon and not self._transactional:
                self.flush()
        finally:
            self._producer.core.abandon()
            if self._owns_client:
                self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(abandon=error is not None)

    def _send_pending(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if not pending:
            return
        self._collect()
        rows = pending[0] if len(pending) == 1 else pa.concat_batches(pending)
        for topic, part in self._by_topic(rows):
            self._send(topic, part)

    def _by_topic(self, rows: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
        """The rows of each topic, in the order in which the topics first appear."""
        if self._topic is not None:
            return [(self._topic, rows)]
        at = rows.schema.get_field_index("topic")
        if at < 0:
            raise ValueError("no topic to write to: give one to the writer, or a column topic to the rows")
        topics = rows.column(at)
        if topics.null_count:
            raise ValueError(
                f"the topic of row {pc.index(topics.is_null(), True).as_py()} is null; every row needs one"
            )
        names = topics.unique()
        if len(names) == 1:
            return [(names[0].as_py(), rows)]
        return [(name.as_py(), rows.filter(pc.equal(topics, name))) for name in names]

    def _send(self, topic: str, rows: pa.RecordBatch) -> None:
        count = self._partitions_of(topic)
        self._gathered_bytes = min(max(PENDING_BYTES, count * PENDING_BYTES_A_PARTITION), PENDING_BYTES_MAX)
        records = records_of(rows, self._client.run(_wall_clock()))
        order = np.empty(rows.num_rows, np.int64)
        starts = np.empty(count + 1, np.int64)
        encoder = self._encoder(topic)
        chosen = self._placement.choose(topic, rows, count, encoder.batch_bytes)
        stray = kernels.group_rows(chosen, order, starts)
        if stray >= 0:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"row {stray} asks for partition {chosen[stray]} of topic {topic}, which has 0 to {count - 1}",
            )
        ends = starts.tolist()
        self._tickets += self._producer.send_batches(
            (TopicPartition(topic, partition), data)
            for partition in range(count)
            if ends[partition] < ends[partition + 1]
            for data, _ in encoder.batches(records, order[ends[partition] : ends[partition + 1]])
        )

    def _partitions_of(self, topic: str) -> int:
        cluster = self._client.cluster
        if topic not in cluster.topics:
            try:
                self._client.run(know_topics(cluster, [topic], timeout_ms=self._max_block_ms, create_topics=True))
            except KafkaError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                raise KafkaError(
                    error.code, f"there is no topic {topic}, and the brokers make none by themselves; create it first"
                ) from error
        return len(cluster.topics[topic].partitions)

    def _encoder(self, topic: str) -> Encoder:
        """Batches no larger than the topic takes, as far as we may know that."""
        known = self._encoders.get(topic)
        if known is None:
            cluster, batch_bytes = self._client.cluster, self._batch_bytes
            with suppress(KafkaError):
                (limit,) = self._client.run(describe_configs(cluster, TOPIC, topic, ["max.message.bytes"]))
                batch_bytes = min(batch_bytes, int(limit.value or batch_bytes))
            known = self._encoders[topic] = Encoder(*self._compression, batch_bytes, sums=not self._numbered)
        return known

    def _collect(self) -> None:
        """Take the outcomes that are known, in the order of sending; raise the first that is a failure."""
        while self._tickets and self._tickets[0].done:
            delivered = self._tickets.popleft().result()
            assert isinstance(delivered, Delivered)
            if delivered.base_offset >= 0:
                end = delivered.base_offset + delivered.records_count
                self.ends[delivered.partition] = max(end, self.ends.get(delivered.partition, 0))


def _settings(options: Options, acks: str, transactional_id: str | None) -> Settings:
    if acks not in _ACKS:
        raise ValueError(f"acks is all, 1 or 0, not {acks!r}")
    if transactional_id is not None and _ACKS[acks] != -1:
        raise ValueError(f"a transaction needs acks=all, not {acks!r}")
    codec, level = _compression(options)
    return Settings(
        acks=_ACKS[acks],
        idempotent=_ACKS[acks] == -1 and (transactional_id is not None or options.flag("enable.idempotence", True)),
        transactional_id=transactional_id,
        transaction_timeout_ms=options.number("transaction.timeout.ms", 60_000),
        codec=codec,
        level=level,
        buffer_bytes=options.number("buffer.memory", 33_554_432),
        request_timeout_ms=options.number("request.timeout.ms", 30_000),
        delivery_timeout_ms=options.number("delivery.timeout.ms", 120_000),
        create_topics=True,
    )


def _compression(options: Options) -> tuple[Codec, int | None]:
    name = options.text("compression.type", "none")
    try:
        codec = Codec[name.upper()]
    except KeyError:
        known = ", ".join(codec.name.lower() for codec in Codec)
        raise ValueError(f"kafka.compression.type is one of {known}, not {name!r}") from None
    level = options.text(f"compression.{name}.level", "")
    return codec, options.number(f"compression.{name}.level", 0) if level else None


def _wall_clock() -> Conversation[int]:
    return (yield WallClock())  # type: ignore[no-any-return]  # the shell replies to WallClock with an int
