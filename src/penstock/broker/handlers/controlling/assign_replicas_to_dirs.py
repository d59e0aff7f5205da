"""AssignReplicasToDirs 0: a broker tells in which of its log directories replicas lie (KIP-858).

A broker of ours has one log directory and asks only for a copy whose log has failed, and when it has that copy again
(`broker/placing.py`).
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.controller.directories import decide_assign_directories
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from penstock.protocol.generated.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse


async def handle(
    session: Session, header: RequestHeader, request: AssignReplicasToDirsRequest
) -> AssignReplicasToDirsResponse:
    if not session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return AssignReplicasToDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    services = session.services
    response: AssignReplicasToDirsResponse = await services.controller.change(
        lambda image: decide_assign_directories(image, services.node, request)
    )
    return response
