"""AlterConfigs 0-2, deprecated: all configurations of a resource replaced at once."""

from __future__ import annotations

from functools import partial

from penstock.base.errors import KafkaError
from penstock.broker.handlers.configs.allowing import refusal
from penstock.broker.network.session import Session
from penstock.core.controller.configs import decide_alter_configs
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.alter_configs_request import AlterConfigsRequest
from penstock.protocol.generated.alter_configs_response import AlterConfigsResourceResponse, AlterConfigsResponse


async def handle(session: Session, header: RequestHeader, request: AlterConfigsRequest) -> AlterConfigsResponse:
    services = session.services
    response: AlterConfigsResponse = await services.controller.change(
        lambda image: decide_alter_configs(
            image, services.node, request, may_alter=partial(refusal, session, Operation.ALTER_CONFIGS)
        )
    )
    return response


def refused(request: AlterConfigsRequest, error: KafkaError) -> AlterConfigsResponse:
    results = [
        AlterConfigsResourceResponse(
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
        for one in request.resources
    ]
    return AlterConfigsResponse(responses=results)
