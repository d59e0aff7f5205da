"""What the balancer has to know of the cluster: how large each partition is, asked of the brokers that hold it."""

from __future__ import annotations

import asyncio

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock, Random
from penstock.broker.config import BrokerConfig
from penstock.broker.journal import Journal
from penstock.broker.peer_clients import client_of
from penstock.core.controller.balance import Limits, Place
from penstock.core.metadata.image import Image
from penstock.protocol.generated.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.generated.describe_log_dirs_response import DescribeLogDirsResponse

log = Journal(__name__)

_TIMEOUT_MS = 5_000
_LEADERS_A_ROUND = 20


class Balancing:
    def __init__(self, config: BrokerConfig, clock: Clock, random: Random) -> None:
        every_s = config.number("penstock.balance.interval.ms") / 1000
        self.limits = Limits(
            moves=config.number("penstock.balance.moves"),
            bytes_a_round=int(config.number("penstock.balance.bytes.per.second") * every_s),
            leaders=_LEADERS_A_ROUND,
        )
        self._listener = config.inter_broker_listener
        self._clock = clock
        self._random = random

    async def sizes(self, image: Image) -> dict[Place, int]:
        """Bytes of each partition: of its largest copy. A broker that does not answer is passed over."""
        asked = [self._sizes_on(image, one.id) for one in image.brokers.values() if one.active]
        found: dict[Place, int] = {}
        for told in await asyncio.gather(*asked):
            for place, size in told.items():
                found[place] = max(size, found.get(place, 0))
        return found

    async def _sizes_on(self, image: Image, broker_id: int) -> dict[Place, int]:
        endpoint = image.brokers[broker_id].endpoint(self._listener)
        if endpoint is None:
            return {}
        async with client_of(endpoint.host, endpoint.port, "penstock-balancer", self._clock, self._random) as client:
            try:
                answer = await client.request(None, DescribeLogDirsRequest(topics=None), timeout_ms=_TIMEOUT_MS)
            except KafkaError as error:
                log.warning("a broker did not tell how much it holds", broker=broker_id, fault=str(error))
                return {}
        return _told(image, answer)


def _told(image: Image, answer: DescribeLogDirsResponse) -> dict[Place, int]:
    return {
        (topic.id, one.partition_index): one.partition_size
        for directory in answer.results
        for named in directory.topics
        for topic in [image.topic(named.name)]
        if topic is not None
        for one in named.partitions
    }
