"""IncrementalAlterConfigs 0-1 (KIP-339): single configurations set, deleted, appended to, subtracted from."""

from __future__ import annotations

from functools import partial

from penstock.broker.handlers.configs.allowing import refusal
from penstock.broker.network.session import Session
from penstock.core.controller.configs import decide_incremental_alter_configs
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from penstock.protocol.generated.incremental_alter_configs_response import IncrementalAlterConfigsResponse


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
