"""Topics that clients or coordinators miss, asked of the controller by the broker itself."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from penstock.broker.controller_link import ControllerLink
from penstock.broker.journal import Journal
from penstock.broker.quorum import Quorum
from penstock.core.controller.internal_topics import internal_topic
from penstock.core.metadata.effective import Node
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.create_topics_response import CreateTopicsResponse

log = Journal(__name__)

_DEFAULT = -1
_TIMEOUT_MS = 30_000
_FINE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class TopicCreation:
    def __init__(self, link: ControllerLink, quorum: Quorum, node: Node) -> None:
        self._link = link
        self._quorum = quorum
        self._node = node

    async def create_missing(self, names: list[str]) -> None:
        """Topics that somebody asked for: with the broker's defaults, internal ones with their own."""
        await self.create([self._topic(name) for name in names])

    async def create(self, topics: list[CreatableTopic]) -> dict[str, str]:
        """Those that could not be created, with the reason; one that is there already is fine."""
        request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
        response: CreateTopicsResponse = await self._link.ask(request, _TIMEOUT_MS)
        faults = {
            topic.name: topic.error_message or ErrorCode(topic.error_code).name
            for topic in response.topics
            if topic.error_code not in _FINE
        }
        for name, fault in faults.items():
            log.warning("a topic could not be created", topic=name, fault=fault)
        return faults

    async def create_offsets_topic(self) -> None:
        await self.create_missing([OFFSETS_TOPIC])

    async def create_transactions_topic(self) -> None:
        await self.create_missing([TRANSACTIONS_TOPIC])

    async def create_share_state_topic(self) -> None:
        await self.create_missing([SHARE_STATE_TOPIC])

    def _topic(self, name: str) -> CreatableTopic:
        if name in INTERNAL_TOPICS:
            return internal_topic(self._quorum.image, self._node, name)
        return CreatableTopic(name=name, num_partitions=_DEFAULT, replication_factor=_DEFAULT)
