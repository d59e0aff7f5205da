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
_SOONEST_MS = 5_000
"""between two rounds: each asks every broker for all of its sizes"""


class Balancing:
    def __init__(self, config: BrokerConfig, clock: Clock, random: Random) -> None:
        self._every_ms = config.number("penstock.balance.interval.ms")
        self._bytes_a_second = config.number("penstock.balance.bytes.per.second")
        self.limits = Limits(
            moves=config.number("penstock.balance.moves"),
            bytes_a_round=self._bytes_a_second * self._every_ms // 1000,
            leaders=_LEADERS_A_ROUND,
        )
        self._listener = config.inter_broker_listener
        self._clock = clock
        self._random = random

    def rest_ms(self, moving_bytes: int) -> int:
        """How long until the next round: while something is on its way, as long as that may take. A broker that is
        new would wait for hours for thousands of small copies, a few of them a round."""
        if not moving_bytes or not self._bytes_a_second:
            return self._every_ms
        return min(self._every_ms, max(_SOONEST_MS, 1000 * moving_bytes // self._bytes_a_second))

    async def sizes(self, image: Image) -> dict[Place, int] | None:
        """Bytes of each partition: of its largest copy. None where a broker does not answer: what it alone holds would
        count as empty, data would be sent there, and away again once it does."""
        asked = [self._sizes_on(image, one.id) for one in image.brokers.values() if one.active]
        found: dict[Place, int] = {}
        for told in await asyncio.gather(*asked):
            if told is None:
                return None
            for place, size in told.items():
                found[place] = max(size, found.get(place, 0))
        return found

    async def _sizes_on(self, image: Image, broker_id: int) -> dict[Place, int] | None:
        endpoint = image.brokers[broker_id].endpoint(self._listener)
        if endpoint is None:
            return None
        async with client_of(endpoint.host, endpoint.port, "penstock-balancer", self._clock, self._random) as client:
            try:
                answer = await client.request(None, DescribeLogDirsRequest(topics=None), timeout_ms=_TIMEOUT_MS)
            except KafkaError as error:
                log.warning("a broker did not tell how much it holds", broker=broker_id, fault=str(error))
                return None
        codes = (answer.error_code, *(directory.error_code for directory in answer.results))
        refused = next((code for code in codes if code), 0)
        if refused:
            log.warning("a broker did not tell how much it holds", broker=broker_id, error_code=refused)
            return None
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
