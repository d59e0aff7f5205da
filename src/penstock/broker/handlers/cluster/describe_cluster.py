"""DescribeCluster 0-2 (KIP-700, KIP-919): the brokers, the cluster's id and its controller.

A broker answers for brokers; endpoint type 2 (controllers) belongs to the controller's listener.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.metadata.image import Image
from penstock.core.security.acl import Resource
from penstock.core.security.authorizer import OPERATIONS_NOT_ASKED
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.generated.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

_BROKERS = 1


def handle(session: Session, header: RequestHeader, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="this is a broker's listener; controllers are described by a controller's",
        )
    services = session.services
    image: Image = services.image
    operations = OPERATIONS_NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = session.operation_bits(Resource.CLUSTER)
    brokers = []
    for broker in image.brokers.values():
        endpoint = broker.endpoint(session.peer.listener)
        if endpoint is not None and (request.include_fenced_brokers or not broker.fenced):
            brokers.append(
                DescribeClusterBroker(
                    broker_id=broker.id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.fenced,
                )
            )
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=services.cluster_id,
        controller_id=services.controller_id(),
        brokers=brokers,
        cluster_authorized_operations=operations,
    )
