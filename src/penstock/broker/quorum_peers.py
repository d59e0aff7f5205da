"""The quorum's requests on their way to other nodes and what comes back, and theirs to this one.

It is loaded with the first message: a node that is alone never needs a client, nor the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Random
from penstock.broker.config import BrokerConfig
from penstock.broker.quorum_answers import answer_of, refusal_of, response_of
from penstock.broker.quorum_requests import message_of, request_of
from penstock.core.raft.peers import lane_of
from penstock.core.raft.rpc import Answer, Answered, Failed, Request, Send
from penstock.core.raft.voters import Voter
from penstock.protocol.generated.api_versions_request import ApiVersionsRequest
from penstock.protocol.generated.api_versions_response import ApiVersionsResponse
from penstock.protocol.generated.vote_request import VoteRequest
from penstock.protocol.message import Message
from penstock.wire.aio import Client
from penstock.wire.cluster import Broker
from penstock.wire.conversation import Ask, Ticket
from penstock.wire.errors import Disconnected

_NOBODY = "localhost:1"
"""A client wants an address to begin with, where none is configured."""


class QuorumPeers:
    def __init__(
        self,
        config: BrokerConfig,
        cluster_id: str,
        clock: Clock,
        random: Random,
        tell: Callable[[Answered | Failed], None],
    ) -> None:
        servers = config.texts("controller.quorum.bootstrap.servers")
        self._cluster_id = cluster_id
        self._tell = tell
        self._client = Client(
            servers or _NOBODY, client_id=f"raft-{config.node_id}", chance=random.below, wall_ms=clock.wall_ms
        )

    def place(self, node_id: int, host: str, port: int) -> None:
        """Where a node of the quorum listens."""
        self._client.cluster.learn_broker(Broker(node_id, host, port))

    def send(self, send: Send) -> None:
        message = message_of(send.request, self._cluster_id)
        ask = Ask(send.peer, message, timeout_ms=send.timeout_ms, channel=lane_of(send.request))
        ticket = self._client.begin(ask)
        if ticket.done:
            # Not within this call: whoever sends is in the middle of a turn.
            asyncio.get_running_loop().call_soon(self._done, send, ticket)
        else:
            ticket.listen(lambda: self._done(send, ticket))

    async def close(self) -> None:
        self._tell = _nobody
        await self._client.close()

    def _done(self, send: Send, ticket: Ticket) -> None:
        try:
            answer = answer_of(send.request, ticket.result())
        except KafkaError as error:
            gone = isinstance(error, Disconnected) or error.code is ErrorCode.BROKER_NOT_AVAILABLE
            self._tell(Failed(send.correlation, gone))
        else:
            self._tell(Answered(send.correlation, answer))


async def answered(
    message: Any, cluster_id: str, ask: Callable[[Request], Awaitable[Answer]], unfit: str | None
) -> Message:
    """The response to another node's request, which `ask` takes through the core. `unfit`: why this node does not
    take part any more."""
    told = getattr(message, "cluster_id", None)
    if told is not None and told != cluster_id:
        return refusal_of(message.API_KEY, ErrorCode.INCONSISTENT_CLUSTER_ID)
    if unfit is not None:
        return refusal_of(message.API_KEY, ErrorCode.BROKER_NOT_AVAILABLE, unfit)
    try:
        request = request_of(message)
        return response_of(request, await ask(request))
    except KafkaError as error:
        return refusal_of(message.API_KEY, error.code, str(error))


async def unreachable(voter: Voter, timeout_ms: int) -> str | None:
    """Why a node cannot become a voter: it does not answer where it says it listens, or not as a controller."""
    if not voter.endpoints:
        return f"node {voter.id} does not tell where its controller listens"
    _, host, port = voter.endpoints[0]
    question = ApiVersionsRequest(client_software_name="penstock", client_software_version="0")
    try:
        client = Client([f"[{host}]:{port}" if ":" in host else f"{host}:{port}"])
    except ValueError as error:
        return f"node {voter.id} does not tell where its controller listens: {error}"
    async with client:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                answer: ApiVersionsResponse = await client.request(None, question, timeout_ms=timeout_ms)
        except (KafkaError, TimeoutError) as error:
            return f"node {voter.id} cannot be reached at {host}:{port}: {error}"
    if all(one.api_key != VoteRequest.API_KEY for one in answer.api_keys):
        return f"what listens at {host}:{port} is not a controller"
    return None


def _nobody(event: Answered | Failed) -> None:
    """The quorum is closed: what comes now is of no use to anyone."""
