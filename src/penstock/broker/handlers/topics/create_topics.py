"""CreateTopics 2-7: topics with their partitions, placement and configuration (KIP-464, KIP-516, KIP-525)."""

from __future__ import annotations

from functools import partial

from penstock.base.errors import KafkaError
from penstock.broker.network.session import Session
from penstock.core.controller.topics import decide_create_topics
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.create_topics_request import CreateTopicsRequest
from penstock.protocol.generated.create_topics_response import CreatableTopicResult, CreateTopicsResponse


async def handle(session: Session, header: RequestHeader, request: CreateTopicsRequest) -> CreateTopicsResponse:
    services = session.services
    anywhere = session.allows(Operation.CREATE, Resource.CLUSTER)
    response: CreateTopicsResponse = await services.controller.change(
        lambda image: decide_create_topics(
            image,
            services.node,
            request,
            services.random,
            may_create=lambda name: anywhere or session.allows(Operation.CREATE, Resource.TOPIC, name),
            may_describe=partial(session.allows, Operation.DESCRIBE_CONFIGS, Resource.TOPIC),
        )
    )
    return response


def refused(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    code, text = error.code, error.message
    results = [CreatableTopicResult(name=one.name, error_code=code, error_message=text) for one in request.topics]
    return CreateTopicsResponse(topics=results)
