"""DeleteTopics 1-6: by name, or by id from version 6 on (KIP-516)."""

from __future__ import annotations

from functools import partial

from penstock.broker.network.session import Session
from penstock.core.controller.topics import decide_delete_topics
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.delete_topics_request import DeleteTopicsRequest
from penstock.protocol.generated.delete_topics_response import DeleteTopicsResponse


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
