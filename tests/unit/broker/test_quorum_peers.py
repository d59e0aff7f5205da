"""What a node of the quorum hears of the others: who is gone, and who is only silent."""

from __future__ import annotations

import asyncio

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.config import BrokerConfig
from penstock.broker.embedded import single_node
from penstock.broker.quorum_peers import QuorumPeers
from penstock.broker.system import SystemClock, SystemRandom
from penstock.core.raft.rpc import Answered, Failed, Send, Vote
from penstock.core.raft.voters import Replica
from penstock.protocol.generated.vote_response import VoteResponse
from penstock.wire.conversation import Ticket
from penstock.wire.errors import Disconnected

VOTE = Vote(7, Replica(1, b"1" * 16), Replica(2, b"2" * 16), 6, 40, pre_vote=True)


@pytest.mark.parametrize(
    ("outcome", "is_gone"),
    [
        (Disconnected("nobody listens"), True),
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT), False),
        (VoteResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE), True),
        (VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID), False),
    ],
)
def test_a_node_that_is_stopping_is_as_good_as_gone_and_a_silent_one_is_not(
    outcome: KafkaError | VoteResponse, is_gone: bool
):
    heard: list[Answered | Failed] = []

    async def told() -> None:
        config = BrokerConfig(single_node("/nowhere"))
        peers = QuorumPeers(config, "c", SystemClock(), SystemRandom(), heard.append)
        ticket = Ticket()
        if isinstance(outcome, KafkaError):
            ticket.fail(outcome)
        else:
            ticket.succeed(outcome)
        peers._done(Send(2, 5, VOTE, 1_000), ticket)
        await peers.close()

    asyncio.run(told())
    assert heard == [Failed(5, is_gone)]
