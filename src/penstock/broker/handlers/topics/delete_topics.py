"""DeleteTopics 1-6: by name, or by id from version 6 on (KIP-516)."""

from __future__ import annotations

from functools import partial

from penstock.base.errors import KafkaError
from penstock.base.ids import NO_ID
from penstock.broker.network.session import Session
from penstock.core.controller.topics import decide_delete_topics
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.generated.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse


async def handle(session: Session, header: RequestHeader, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    services = session.services
    anywhere = session.allows(Operation.DELETE, Resource.CLUSTER)
    response: DeleteTopicsResponse = await services.controller.change(
        lambda image: decide_delete_topics(
            image,
            services.node,
            request,
            header.api_version,
            may_delete=lambda name: anywhere or session.allows(Operation.DELETE, Resource.TOPIC, name),
            may_describe=partial(session.allows, Operation.DESCRIBE, Resource.TOPIC),
        )
    )
    return response


def refused(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    code, text = error.code, error.message
    asked = [(name, NO_ID) for name in request.topic_names] + [(one.name, one.topic_id) for one in request.topics]
    results = [
        DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=text)
        for name, topic_id in asked
    ]
    return DeleteTopicsResponse(responses=results)
