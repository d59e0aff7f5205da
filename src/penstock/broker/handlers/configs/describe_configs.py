"""DescribeConfigs 1-4: every configuration with its value, where that comes from, its type and what it means."""

from __future__ import annotations

from functools import partial

from penstock.broker.handlers.configs.allowing import refusal
from penstock.broker.network.session import Session
from penstock.core.controller.describe import describe_configs
from penstock.core.security.acl import Operation
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_configs_request import DescribeConfigsRequest
from penstock.protocol.generated.describe_configs_response import DescribeConfigsResponse


def handle(session: Session, header: RequestHeader, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    services = session.services
    return describe_configs(
        services.image,
        services.node,
        request,
        may_describe=partial(refusal, session, Operation.DESCRIBE_CONFIGS),
    )
