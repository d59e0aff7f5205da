"""Requests of one connection are appended in their order, also while a transaction's coordinator is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from penstock.base.errors import ErrorCode
from penstock.broker.verification import Verification
from penstock.core.transactions.adding import Enlist, Errors
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.generated.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.wire.aio import Client
from penstock.wire.conversation import Ask
from tests.unit.broker.quorum_cluster import Cluster, run

COPY = "copy"


def test_a_batch_behind_the_first_of_a_transaction_does_not_overtake_another(tmp_path: Path) -> None:
    """The first is confirmed and opens the transaction; the second asked before that, and its answer is late; the
    third needs none."""
    cluster = Cluster(tmp_path, voters=(1,))
    cluster.configs |= {"transaction.state.log.num.partitions": "1"}

    async def work() -> None:
        await cluster.start(1)
        services = cluster.nodes[1].services
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        await services.link.ask(CreateTopicsRequest(topics=[topic]), 10_000)
        topic_id = services.image.topics["orders"].id
        async with Client(cluster.nodes[1].address) as client:
            producer = await _producer(client)
            services.verification = _Late(services.verification, lambda: _produces(cluster) == 3, cluster)
            first, second = (client.begin(_produce(topic_id, producer, sequence)) for sequence in (0, 1))
            answers = [await client.finish(first)]
            third = client.begin(_produce(topic_id, producer, 2))
            answers += [await client.finish(second), await client.finish(third)]
        told = [one.responses[0].partition_responses[0] for one in answers]
        assert [(one.error_code, one.base_offset) for one in told] == [(0, 0), (0, 1), (0, 2)]

    run(cluster, work)


class _Late:
    """A coordinator whose second answer comes when `now` says so."""

    def __init__(self, verification: Verification, now: Callable[[], bool], cluster: Cluster) -> None:
        self._verification = verification
        self._now = now
        self._cluster = cluster
        self._asked = 0

    async def confirm(self, request: Enlist, begin: Callable[[], None], *, adds: bool) -> Errors:
        self._asked += 1
        is_second = self._asked == 2
        errors = await self._verification.confirm(request, begin, adds=adds)
        if is_second:
            await self._cluster.until(self._now)
        return errors


def _produces(cluster: Cluster) -> int:
    return next(row.requests for row in cluster.nodes[1]._table.rows if row.name == "Produce")


async def _producer(client: Client) -> InitProducerIdResponse:
    await client.request(None, FindCoordinatorRequest(key_type=1, coordinator_keys=[COPY]))
    while True:
        answer: InitProducerIdResponse = await client.request(
            None, InitProducerIdRequest(transactional_id=COPY, transaction_timeout_ms=60_000)
        )
        if answer.error_code == ErrorCode.NONE:
            return answer
        await asyncio.sleep(0.01)


def _produce(topic_id: bytes, producer: InitProducerIdResponse, sequence: int) -> Ask:
    batch = build_batch(
        [Record.of(None, b"x", 1_700_000_000_000)],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )
    data = [PartitionProduceData(index=0, records=bytes(batch))]
    topics = [TopicProduceData(topic_id=topic_id, partition_data=data)]
    return Ask(None, ProduceRequest(transactional_id=COPY, acks=-1, timeout_ms=10_000, topic_data=topics))
