"""Whether an active controller answers: where none does, brokers answer all the same, from what they knew last."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from penstock.cli.failures import NO_CONTROLLER, Failure

if TYPE_CHECKING:
    from penstock.protocol.generated.describe_quorum_response import PartitionData
    from penstock.wire.blocking import Client

ASK_S = 2.0
"""for each of two questions, once a command has waited in vain"""
START_OTHERS = (
    "start the others: `penstock broker --config DIR/<n>/server.properties`, for each node that is away; once a "
    "majority of the controllers is there, `penstock node ls` tells who is"
)


class NoController(Failure):
    """Brokers answer, and no controller decides."""

    def __init__(self) -> None:
        super().__init__(NO_CONTROLLER, START_OTHERS)


def describe_quorum(client: Client, timeout_s: float) -> PartitionData:
    """Leader, epoch, voters and observers. `NoController` where a broker answers and no controller does in time. The
    client's own limit ends each of the two questions, too."""
    from penstock.base.errors import RETRIABLE, KafkaError
    from penstock.base.ids import METADATA_TOPIC
    from penstock.protocol.generated import describe_quorum_request as asked
    from penstock.protocol.generated.describe_quorum_response import DescribeQuorumResponse
    from penstock.protocol.generated.metadata_request import MetadataRequest
    from penstock.protocol.generated.metadata_response import MetadataResponse
    from penstock.wire.routes import ask_any

    # Whoever answers this is asked for the controller then: that one is silent tells nothing of the others.
    client.run(ask_any(client.cluster, MetadataRequest(topics=[]), MetadataResponse))
    topic = asked.TopicData(topic_name=METADATA_TOPIC, partitions=[asked.PartitionData(partition_index=0)])
    talk = ask_any(
        client.cluster,
        asked.DescribeQuorumRequest(topics=[topic]),
        DescribeQuorumResponse,
        lambda reply: reply.error_code or next((p.error_code for t in reply.topics for p in t.partitions), 0),
        # An attempt that begins just before the end may take as long again.
        timeout_ms=int(timeout_s * 1000 / 2),
    )
    try:
        found = client.run(talk).topics[0].partitions[0]
    except KafkaError as error:
        if error.code in RETRIABLE:
            raise NoController from None
        raise
    if found.leader_id < 0:
        raise NoController
    return found


def has_controller(args: argparse.Namespace) -> bool | None:
    """False only where a broker answers and no controller does, None where that is unknown. Of use after a command has
    waited in vain."""
    from penstock.base.errors import KafkaError
    from penstock.cli.options import client_config
    from penstock.wire.blocking import Client
    from penstock.wire.security import parse

    try:
        security = parse(client_config(args))
        with Client(args.bootstrap_server, security=security, run_limit_ms=int(ASK_S * 1000)) as client:
            describe_quorum(client, ASK_S)
    except NoController:
        return False
    except (KafkaError, ValueError):
        return None  # nobody answers, or the address is none
    return True
