"""DescribeCluster 0-2 (KIP-700, KIP-919): the brokers or the controllers, the cluster's id and its controller.

A broker's listener answers for brokers, endpoint type 1; a controller's for controllers, endpoint type 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.metadata.image import Image
from penstock.core.security.acl import Resource
from penstock.core.security.authorizer import OPERATIONS_NOT_ASKED
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.generated.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse

_BROKERS, _CONTROLLERS = 1, 2


def handle(session: Session, header: RequestHeader, request: DescribeClusterRequest) -> DescribeClusterResponse:
    services = session.services
    of_controllers = session.peer.listener in services.config.controller_listener_names
    kind = _CONTROLLERS if of_controllers else _BROKERS
    if request.endpoint_type != kind:
        asked, here = ("brokers", "controller") if of_controllers else ("controllers", "broker")
        text = f"this is a {here}'s listener; {asked} are described by theirs"
        return DescribeClusterResponse(error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE, error_message=text)
    operations = OPERATIONS_NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = session.operation_bits(Resource.CLUSTER)
    nodes = _controllers(session) if of_controllers else _brokers(session, request.include_fenced_brokers)
    return DescribeClusterResponse(
        endpoint_type=kind,
        cluster_id=services.cluster_id,
        controller_id=services.quorum.leader_id if of_controllers else services.controller_id(),
        brokers=list(nodes),
        cluster_authorized_operations=operations,
    )


def _brokers(session: Session, with_fenced: bool) -> Iterator[DescribeClusterBroker]:
    image: Image = session.services.image
    for broker in image.brokers.values():
        endpoint = broker.endpoint(session.peer.listener)
        if endpoint is not None and (with_fenced or not broker.fenced):
            yield DescribeClusterBroker(
                broker_id=broker.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )


def _controllers(session: Session) -> Iterator[DescribeClusterBroker]:
    image: Image = session.services.image
    for controller in image.controllers.values():
        for endpoint in controller.endpoints:
            if endpoint.name == session.peer.listener:
                yield DescribeClusterBroker(broker_id=controller.id, host=endpoint.host, port=endpoint.port, rack=None)
