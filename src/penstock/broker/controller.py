"""The active controller's shell: one decision at a time, committed to the metadata log before it is answered.

It is active while this node leads the metadata quorum. The sessions of brokers live in its memory for so long: the next
active controller begins its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock
from penstock.broker.config import BrokerConfig
from penstock.broker.quorum import Quorum
from penstock.core.controller.brokers import decide_register_broker
from penstock.core.controller.elections import is_unclean
from penstock.core.controller.heartbeats import Heartbeats
from penstock.core.controller.result import Result
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.protocol.generated.broker_heartbeat_request import BrokerHeartbeatRequest
from penstock.protocol.generated.broker_heartbeat_response import BrokerHeartbeatResponse
from penstock.protocol.generated.broker_registration_request import BrokerRegistrationRequest
from penstock.protocol.generated.broker_registration_response import BrokerRegistrationResponse
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.message import Message

Response = TypeVar("Response")


class Controller:
    """Invariant: `heartbeats` is there exactly while the controller is active."""

    def __init__(self, quorum: Quorum, node: Node, config: BrokerConfig, clock: Clock) -> None:
        self.node = node
        self.heartbeats: Heartbeats | None = None
        self.unclean_elections = 0
        """by this node, since it started"""
        self._quorum = quorum
        self._config = config
        self._clock = clock
        self._deciding = asyncio.Lock()
        """A decision looks at the image that all decisions before it have led to."""
        self._connections: dict[int, object] = {}
        """the connection over which a broker's last heartbeat came"""
        self._watchers: list[Callable[[], None]] = []
        quorum.on_leadership(self._on_leadership)

    @property
    def is_active(self) -> bool:
        return self._quorum.is_leader

    @property
    def image(self) -> Image:
        return self._quorum.image

    def watch_sessions(self, watcher: Callable[[], None]) -> None:
        """`watcher` is called when sessions begin anew, are gone, or one of them may end sooner than it would have."""
        self._watchers.append(watcher)

    async def change(self, decide: Callable[[Image], Result[Response]]) -> Response:
        """A decision that is proposed keeps its turn until it is committed, even where the client that asked for it
        hangs up meanwhile: the next one would look at an image without it and create the same topic again.

        KafkaError NOT_CONTROLLER where this node does not lead, or no longer when it was to be committed."""
        await self._deciding.acquire()
        committed: asyncio.Future[int] | None = None
        unclean = 0
        try:
            if not self._quorum.is_leader:
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            result = decide(self._quorum.image)
            if result.records:
                unclean = _unclean_elections(self._quorum.image, result.records)
                committed = self._quorum.propose(result.records)
        finally:
            if committed is None:
                self._deciding.release()
        if committed is not None:
            committed.add_done_callback(partial(self._decided, unclean))
            await asyncio.shield(committed)
        return result.response

    async def register(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        quorum = self._quorum

        def decide(image: Image) -> Result[BrokerRegistrationResponse]:
            alive = self._sessions().is_alive(image, request.broker_id, self._clock.monotonic_ms())
            return decide_register_broker(
                image,
                self.node,
                request,
                cluster_id=quorum.cluster_id,
                next_offset=quorum.end_offset,
                has_session=alive,
            )

        return await self.change(decide)

    async def heartbeat(
        self, request: BrokerHeartbeatRequest, connection: object | None = None
    ) -> BrokerHeartbeatResponse:
        """A session lasts from the moment its heartbeat comes in; a change that it asks for waits for its turn."""
        sessions, image = self._sessions(), self._quorum.image
        try:
            sessions.touch(image, request, self._clock.monotonic_ms())
        except KafkaError as error:
            return BrokerHeartbeatResponse(error_code=error.code)
        self._connections[request.broker_id] = connection
        if not sessions.wants_change(image, request):
            return sessions.answer(image, request)
        node, quorum = self.node, self._quorum
        return await self.change(lambda image: sessions.decide(image, node, request, quorum.end_offset))

    def lost(self, broker_id: int, epoch: int, connection: object) -> None:
        """The connection of a broker's heartbeats is gone: it must be back soon. One that it has replaced by another
        may end at any time."""
        if self.heartbeats is not None and self._connections.get(broker_id) is connection:
            self.heartbeats.lost_connection(broker_id, epoch, self._clock.monotonic_ms())
            self._tell()

    def _decided(self, unclean: int, committed: asyncio.Future[int]) -> None:
        """Whoever asked may have gone: then nobody else looks at how it ended."""
        if not committed.cancelled() and committed.exception() is None:
            self.unclean_elections += unclean
        self._deciding.release()

    def _sessions(self) -> Heartbeats:
        if self.heartbeats is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return self.heartbeats

    def _on_leadership(self, is_leader: bool, _epoch: int) -> None:
        self.heartbeats = None
        self._connections.clear()
        if is_leader:
            self.heartbeats = Heartbeats(
                self._quorum.image,
                self._clock.monotonic_ms(),
                session_timeout_ms=self._config.number("broker.session.timeout.ms"),
                reconnect_ms=self._config.number("penstock.broker.reconnect.ms"),
            )
        self._tell()

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher()


def _unclean_elections(image: Image, decided: Sequence[Message]) -> int:
    count = 0
    for change in decided:
        if isinstance(change, PartitionChangeRecord) and change.leader >= 0:
            topic = image.topic_by_id(change.topic_id)
            count += topic is not None and is_unclean(topic.partitions[change.partition_id], change)
    return count
