"""IncrementalAlterConfigs 0-1 (KIP-339): single configurations set, deleted, appended to, subtracted from."""

from __future__ import annotations

from functools import partial

from penstock.base.errors import KafkaError
from penstock.broker.handlers.configs.allowing import refusal
from penstock.broker.network.session import Session
from penstock.core.controller.configs import decide_incremental_alter_configs
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from penstock.protocol.generated.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


async def handle(
    session: Session, header: RequestHeader, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    services = session.services
    response: IncrementalAlterConfigsResponse = await services.controller.change(
        lambda image: decide_incremental_alter_configs(
            image, services.node, request, may_alter=partial(refusal, session, Operation.ALTER_CONFIGS)
        )
    )
    return response


def refused(request: IncrementalAlterConfigsRequest, error: KafkaError) -> IncrementalAlterConfigsResponse:
    results = [
        AlterConfigsResourceResponse(
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            error_code=error.code,
            error_message=error.message,
        )
        for one in request.resources
    ]
    return IncrementalAlterConfigsResponse(responses=results)
