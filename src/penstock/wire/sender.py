"""Batches out, outcomes in: which batch goes to which broker now, and what an answer means for it.

Idempotent with an identity, else at most one batch a partition in flight. A batch ends in exactly one way: its ticket
succeeds with `Delivered`, or fails with the KafkaError that says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.base.errors import RETRIABLE, ErrorCode, KafkaError
from penstock.base.ids import NO_ID, TopicPartition
from penstock.protocol.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.generated.produce_response import PartitionProduceResponse, ProduceResponse
from penstock.records.batch import NO_SEQUENCE
from penstock.wire.cluster import Broker, Cluster
from penstock.wire.conversation import REQUEST_TIMEOUT_MS, Ticket
from penstock.wire.errors import TimedOut, error_code
from penstock.wire.lanes import Batch, Identity, Lane
from penstock.wire.retries import BACKOFF, METADATA_STALE

CALLS_PER_NODE_MAX = 5
EPOCH_MAX = 32_766
"""the last epoch a client may take by itself; the next one asks for a new producer id."""
LAST_VERSION_BY_NAME = 12
LAST_VERSION_BEFORE_TV2 = 11
REQUEST_DATA_BYTES_MAX = 1_048_576

NOT_APPENDED: frozenset[ErrorCode] = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
"""Refusals worth a retry that tell for sure that this attempt wrote nothing. All other retriable ones leave it open."""

OUT_OF_STEP = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})


class Delivered(NamedTuple):
    partition: TopicPartition
    base_offset: int
    """-1 where the broker only said that it had the batch already, or with acks=0."""
    append_time_ms: int
    records_count: int


@dataclass(slots=True)
class Call:
    """One Produce request and the batches in it."""

    node: int
    message: ProduceRequest
    max_version: int | None
    batches: list[Batch]
    answered: bool
    ticket: Ticket | None = None


class Sender:
    def __init__(
        self,
        *,
        acks: int = -1,
        idempotent: bool = True,
        transactional_id: str | None = None,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        delivery_timeout_ms: int = 120_000,
        request_bytes_max: int = REQUEST_DATA_BYTES_MAX,
    ) -> None:
        assert not idempotent or acks == -1, "an idempotent producer waits for all replicas in sync"
        assert idempotent or transactional_id is None, "a transactional producer is idempotent"
        self._acks = acks
        self._idempotent = idempotent
        self._transactional_id = transactional_id
        self._request_timeout_ms = request_timeout_ms
        self._delivery_timeout_ms = delivery_timeout_ms
        self._request_bytes_max = request_bytes_max
        self._lanes: dict[TopicPartition, Lane] = {}
        self._calls: dict[int, int] = {}
        self.identity: Identity | None = None
        """who we are to the brokers; None until it is asked for, and when it has to be asked for again."""
        self.implicit_partitions = False
        """transaction.version 2: the first Produce adds a partition to the transaction."""
        self.failure: KafkaError | None = None
        """the first batch that failed since `forget_failure`: a transaction with it cannot be committed."""
        self.bytes_waiting = 0
        """bytes of batches whose fate is open."""

    @property
    def needs_identity(self) -> bool:
        return self._idempotent and self.identity is None

    def add(
        self, partition: TopicPartition, data: bytearray | memoryview, count: int, now_ms: int, ticket: Ticket
    ) -> None:
        lane = self._lanes.get(partition)
        if lane is None:
            lane = self._lanes[partition] = Lane(partition)
        lane.add(Batch(partition, data, count, now_ms, ticket))
        self.bytes_waiting += len(data)

    def is_idle(self) -> bool:
        return not any(lane.queue or lane.flying for lane in self._lanes.values())

    def is_flying(self) -> bool:
        return any(lane.flying for lane in self._lanes.values())

    def partitions(self) -> list[TopicPartition]:
        """Those with batches that wait to leave."""
        return [lane.partition for lane in self._lanes.values() if lane.queue]

    @property
    def batches_queued(self) -> int:
        return sum(len(lane.queue) for lane in self._lanes.values())

    def leaderless(self, cluster: Cluster) -> list[str]:
        """Topics of waiting batches whose leader is unknown."""
        return list(dict.fromkeys(p.topic for p in self.partitions() if cluster.leader(p) is None))

    def retry_in_ms(self, now_ms: int) -> int | None:
        """When a lane that waits may try again; None where none waits."""
        waits = [lane.retry_at_ms - now_ms for lane in self._lanes.values() if lane.queue and lane.retry_at_ms > now_ms]
        return min(waits, default=None)

    def poll(self, cluster: Cluster, now_ms: int) -> list[Call]:
        """The requests to send now. Each must be answered by `on_answer` or `on_failure`."""
        self.expire(now_ms)
        self._close_gaps()
        if self.needs_identity:
            return []
        by_node: dict[int, list[Batch]] = {}
        sizes: dict[int, int] = {}
        for lane in self._lanes.values():
            node = cluster.leader(lane.partition)
            batch = lane.next_batch(self.identity) if now_ms >= lane.retry_at_ms else None
            if batch is None or node is None or self._calls.get(node, 0) >= CALLS_PER_NODE_MAX:
                continue
            size = sizes.get(node, 0) + len(batch.data)
            if node in by_node and size > self._request_bytes_max:
                continue
            sizes[node] = size
            lane.depart(batch, self.identity, self._transactional_id is not None)
            by_node.setdefault(node, []).append(batch)
        return [self._call(cluster, node, batches) for node, batches in by_node.items()]

    def on_answer(self, call: Call, answer: ProduceResponse | None, cluster: Cluster, now_ms: int) -> None:
        """`answer` is None for acks=0."""
        self._calls[call.node] -= 1
        if answer is None:
            for batch in call.batches:
                self._succeed(batch, -1, -1)
            return
        for endpoint in answer.node_endpoints:
            cluster.learn_broker(Broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack))
        outcomes: dict[TopicPartition, PartitionProduceResponse] = {}
        for topic in answer.responses:
            name = topic.name or cluster.names.get(topic.topic_id, "")
            outcomes.update({TopicPartition(name, one.index): one for one in topic.partition_responses})
        for batch in call.batches:
            self._conclude(batch, outcomes.get(batch.partition), cluster, now_ms)

    def on_failure(self, call: Call, error: KafkaError, cluster: Cluster, now_ms: int) -> None:
        """The request came to nothing as a whole: no connection, no answer, no common version."""
        self._calls[call.node] -= 1
        for batch in call.batches:
            self._refuse(batch, error, cluster, now_ms)

    def fail_waiting(self, error: KafkaError) -> None:
        """Give up what is not in flight: a transaction is being aborted, or the producer closed."""
        for lane in self._lanes.values():
            for batch in list(lane.queue):
                self._fail(lane, batch, error)

    def renew(self, identity: Identity) -> None:
        """A new identity, after a transaction or from InitProducerId: every lane begins at sequence 0 again."""
        assert self.is_idle() or self.identity is None
        self.identity = identity
        self.failure = None
        for lane in self._lanes.values():
            if not lane.flying and not any(batch.uncertain for batch in lane.queue):
                lane.restart()

    def has_gap(self) -> bool:
        return any(lane.gap for lane in self._lanes.values())

    def _call(self, cluster: Cluster, node: int, batches: list[Batch]) -> Call:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, index = batch.partition
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(name=name, topic_id=cluster.topic_id(name), partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=index, records=memoryview(batch.data)))
        max_version = None
        if any(topic.topic_id == NO_ID for topic in topics.values()):
            max_version = LAST_VERSION_BY_NAME
        if self._transactional_id is not None and not self.implicit_partitions:
            max_version = LAST_VERSION_BEFORE_TV2
        message = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._request_timeout_ms,
            topic_data=list(topics.values()),
        )
        self._calls[node] = self._calls.get(node, 0) + 1
        return Call(node, message, max_version, batches, answered=self._acks != 0)

    def _conclude(self, batch: Batch, outcome: PartitionProduceResponse | None, cluster: Cluster, now_ms: int) -> None:
        if outcome is None:
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker did not speak of {batch.partition}")
            self._fail(self._lanes[batch.partition], batch, error)
            return
        code = error_code(outcome.error_code)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._succeed(batch, outcome.base_offset, outcome.log_append_time_ms)
            return
        hint = outcome.current_leader
        if hint.leader_id >= 0:
            cluster.learn_leader(batch.partition, hint.leader_id, hint.leader_epoch)
        text = outcome.error_message or code.name
        self._refuse(batch, KafkaError(code, f"{batch.partition}: {text}"), cluster, now_ms)

    def _succeed(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        self._lanes[batch.partition].deliver(batch)
        self.bytes_waiting -= len(batch.data)
        batch.ticket.succeed(Delivered(batch.partition, base_offset, append_time_ms, batch.count))

    def _refuse(self, batch: Batch, error: KafkaError, cluster: Cluster, now_ms: int) -> None:
        lane = self._lanes[batch.partition]
        if error.code in METADATA_STALE:
            cluster.mark_stale()
        if error.code in OUT_OF_STEP and batch.sequence != NO_SEQUENCE:
            self._out_of_step(lane, batch, error)
            lane.retry_at_ms = now_ms + BACKOFF.after_ms(batch.attempts - 1)
        elif error.code in RETRIABLE:
            batch.uncertain = batch.uncertain or error.code not in NOT_APPENDED
            lane.come_back(batch)
            lane.retry_at_ms = now_ms + BACKOFF.after_ms(batch.attempts - 1)
        else:
            self._fail(lane, batch, error)

    def _out_of_step(self, lane: Lane, batch: Batch, error: KafkaError) -> None:
        """The broker expects another sequence. Behind a batch that is being retried that is only natural. Else records
        of ours are missing in the log: a transaction ends there, a plain producer goes on under a new epoch."""
        batch.uncertain = False
        first = lane.is_first(batch)
        if first and self._transactional_id is not None:
            self._fail(lane, batch, error)
            return
        lane.come_back(batch)
        lane.gap = lane.gap or first

    def _fail(self, lane: Lane, batch: Batch, error: KafkaError) -> None:
        lane.drop(batch)
        lane.gap = lane.gap or (self._idempotent and batch.sequence != NO_SEQUENCE)
        self.bytes_waiting -= len(batch.data)
        self.failure = self.failure or error
        batch.ticket.fail(error)

    def expire(self, now_ms: int) -> None:
        """What was not delivered in time has failed, also where nobody can be asked who leads."""
        for lane in self._lanes.values():
            while lane.queue and now_ms - lane.queue[0].created_ms >= self._delivery_timeout_ms:
                batch = lane.queue[0]
                cause = f"{batch.partition}: not delivered within {self._delivery_timeout_ms} ms"
                self._fail(lane, batch, TimedOut(cause))

    def _close_gaps(self) -> None:
        """Plain producers take the next epoch by themselves; in a transaction the coordinator gives it out."""
        if self._transactional_id is not None:
            return
        restarting = [lane for lane in self._lanes.values() if lane.needs_new_epoch()]
        for lane in restarting:
            lane.restart()
        if restarting and self.identity is not None:
            producer_id, epoch = self.identity
            self.identity = Identity(producer_id, epoch + 1) if epoch < EPOCH_MAX else None
