"""Where partitions end, whoever leads them: for the lag of groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from penstock.base.errors import KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.partitions import Partitions
from penstock.broker.peers import Peers
from penstock.core.metadata.image import NO_LEADER, Image

if TYPE_CHECKING:
    from penstock.protocol.generated.list_offsets_request import ListOffsetsRequest
    from penstock.protocol.generated.list_offsets_response import ListOffsetsResponse

_LATEST = -1
_CLIENT = -1
_TIMEOUT_MS = 5_000


class EndOffsets:
    def __init__(self, node_id: int, image: Callable[[], Image], partitions: Partitions, peers: Peers) -> None:
        self._node_id = node_id
        self._image = image
        self._partitions = partitions
        self._peers = peers

    async def find(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The watermarks; without those that nobody tells."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in wanted:
            described = self._image().partition(*place)
            leader = NO_LEADER if described is None else described.leader
            by_leader.setdefault(leader, []).append(place)
        by_leader.pop(NO_LEADER, None)
        found = self._here(by_leader.pop(self._node_id, []))
        for answer in await asyncio.gather(*(self._there(leader, places) for leader, places in by_leader.items())):
            found.update(answer)
        return found

    def _here(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        led = {place: self._partitions.get(*place) for place in places}
        return {place: one.high_watermark for place, one in led.items() if one is not None and one.leading is not None}

    async def _there(self, leader: int, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        try:
            answer: ListOffsetsResponse = await self._peers.ask(leader, _request(places), _TIMEOUT_MS)
        except KafkaError:
            return {}
        return {
            TopicPartition(topic.name, one.partition_index): one.offset
            for topic in answer.topics
            for one in topic.partitions
            if not one.error_code
        }


def _request(places: list[TopicPartition]) -> ListOffsetsRequest:
    from penstock.protocol.generated.list_offsets_request import (  # noqa: PLC0415 a cluster of one never needs it
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    topics: dict[str, ListOffsetsTopic] = {}
    for topic, index in places:
        asked = ListOffsetsPartition(partition_index=index, timestamp=_LATEST)
        topics.setdefault(topic, ListOffsetsTopic(name=topic)).partitions.append(asked)
    return ListOffsetsRequest(replica_id=_CLIENT, topics=list(topics.values()))
