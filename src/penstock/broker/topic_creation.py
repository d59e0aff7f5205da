"""Topics that clients or coordinators miss, asked of the controller by the broker itself."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import INTERNAL_TOPICS, OFFSETS_TOPIC
from penstock.base.ports import Random
from penstock.broker.controller import Controller
from penstock.broker.journal import Journal
from penstock.core.controller.internal_topics import internal_topic
from penstock.core.controller.result import Result
from penstock.core.controller.topics import decide_create_topics
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.create_topics_response import CreateTopicsResponse

log = Journal(__name__)

_DEFAULT = -1
_FINE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class TopicCreation:
    def __init__(self, controller: Controller, node: Node, random: Random) -> None:
        self._controller = controller
        self._node = node
        self._random = random

    async def create_missing(self, names: list[str]) -> None:
        """Topics that somebody asked for: with the broker's defaults, internal ones with their own."""
        response = await self._controller.change(lambda image: self._decide(image, names))
        for topic in response.topics:
            if topic.error_code not in _FINE:
                log.warning("a topic could not be created", topic=topic.name, fault=topic.error_message)

    async def create_offsets_topic(self) -> None:
        await self.create_missing([OFFSETS_TOPIC])

    def _decide(self, image: Image, names: list[str]) -> Result[CreateTopicsResponse]:
        topics = [
            internal_topic(image, self._node, name)
            if name in INTERNAL_TOPICS
            else CreatableTopic(name=name, num_partitions=_DEFAULT, replication_factor=_DEFAULT)
            for name in names
        ]
        return decide_create_topics(image, self._node, CreateTopicsRequest(topics=topics), self._random)
