"""What a handler may call: the rooms of one broker, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.base.ports import Clock, Jobs, Random
from penstock.broker.config import BrokerConfig
from penstock.broker.controller import Controller
from penstock.broker.controller_link import ControllerLink
from penstock.broker.coordinator_lookup import CoordinatorLookup
from penstock.broker.coordinators import Coordinators
from penstock.broker.copying import Copying
from penstock.broker.fetching import Fetching
from penstock.broker.forwarding import forward
from penstock.broker.lifecycle import Lifecycle
from penstock.broker.marker_writing import MarkerWriting
from penstock.broker.network.session import Peer
from penstock.broker.partitions import Partitions
from penstock.broker.producer_ids import ProducerIds
from penstock.broker.quorum import Quorum
from penstock.broker.share_coordinators import ShareCoordinators
from penstock.broker.share_groups import ShareGroups
from penstock.broker.share_state import ShareStates
from penstock.broker.shares import Shares
from penstock.broker.streams_groups import StreamsGroups
from penstock.broker.telemetry import Telemetry
from penstock.broker.topic_creation import TopicCreation
from penstock.broker.transactions import Transactions
from penstock.broker.verification import Verification
from penstock.broker.waiters import Waiters
from penstock.core.controller.features import KRAFT_VERSION
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image

_background: set[asyncio.Task[None]] = set()
"""tasks that nobody waits for: the loop itself would let go of them"""


class Features(NamedTuple):
    supported: dict[str, tuple[int, int]]
    finalized: dict[str, int]
    epoch: int
    """the metadata offset at which they were finalized"""


@dataclass(slots=True)
class Services:
    config: BrokerConfig
    node: Node
    clock: Clock
    random: Random
    jobs: Jobs
    quorum: Quorum
    controller: Controller
    link: ControllerLink
    lifecycle: Lifecycle
    partitions: Partitions
    copying: Copying
    fetching: Fetching
    waiters: Waiters
    coordinators: Coordinators
    lookup: CoordinatorLookup
    producer_ids: ProducerIds
    transactions: Transactions
    marker_writing: MarkerWriting
    verification: Verification
    share_coordinators: ShareCoordinators
    share_states: ShareStates
    shares: Shares
    share_groups: ShareGroups
    streams_groups: StreamsGroups
    telemetry: Telemetry
    topic_creation: TopicCreation

    @property
    def image(self) -> Image:
        return self.quorum.image

    @property
    def cluster_id(self) -> str:
        return self.quorum.cluster_id

    def controller_id(self) -> int:
        """Any broker may be told: an admin request reaches the active controller from each."""
        return self.config.node_id

    async def forward(self, peer: Peer, frame: bytes) -> bytes:
        """The active controller's answer to a client's request."""
        return await forward(self.link, peer, frame, self.config.number("request.timeout.ms"))

    def forget_topics(self, topics: list[tuple[str, bytes]]) -> None:
        """Topics (name, id) are deleted: their committed offsets go too, in a while."""
        self.spawn(self.coordinators.forget_topics(topics))
        self.spawn(self.share_coordinators.forget_topics([topic_id for _, topic_id in topics]))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        _background.add(task)
        task.add_done_callback(_background.discard)

    def features(self) -> Features:
        """An adopted directory may have finalized more than we serve: that is not told, or clients would use it."""
        supported = self.quorum.supported_features
        finalized = {name: level for name, level in self.image.features.items() if name in supported}
        finalized[KRAFT_VERSION] = self.quorum.kraft_version
        return Features(supported, finalized, self.image.offset)
