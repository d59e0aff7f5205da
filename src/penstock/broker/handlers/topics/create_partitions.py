"""CreatePartitions 0-3: a topic grows (KIP-195)."""

from __future__ import annotations

from functools import partial

from penstock.base.errors import KafkaError
from penstock.broker.network.session import Session
from penstock.core.controller.partitions import decide_create_partitions
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.create_partitions_request import CreatePartitionsRequest
from penstock.protocol.generated.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult


async def handle(session: Session, header: RequestHeader, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    services = session.services
    response: CreatePartitionsResponse = await services.controller.change(
        lambda image: decide_create_partitions(
            image, request, services.random, may_alter=partial(session.allows, Operation.ALTER, Resource.TOPIC)
        )
    )
    return response


def refused(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    code, text = error.code, error.message
    results = [
        CreatePartitionsTopicResult(name=one.name, error_code=code, error_message=text) for one in request.topics
    ]
    return CreatePartitionsResponse(results=results)
