"""FindCoordinator 0-6 (KIP-699): which broker coordinates a group or a transactional id, or keeps what a share group
knows of a partition (KIP-932, brokers ask that, from version 6 on); several keys at once from version 4 on.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC, id_from_text, is_valid_text
from penstock.broker.handlers.groups.asking import refusal
from penstock.broker.network.session import Session
from penstock.core.metadata.image import Image
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.find_coordinator_response import Coordinator, FindCoordinatorResponse

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_MANY_FROM = 4
_SHARE_FROM = 6


async def handle(session: Session, header: RequestHeader, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    version = header.api_version
    if version >= _MANY_FROM:
        found = [await _find(session, version, request.key_type, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = await _find(session, version, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


async def _find(session: Session, version: int, key_type: int, key: str) -> Coordinator:
    if key_type not in (_GROUP, _TRANSACTION) and not (key_type == _SHARE and version >= _SHARE_FROM):
        return _refused(key, ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
    code = _forbidden(session, key_type, key)
    if code is not None:
        return _refused(key, code)
    services = session.services
    shards, topic = {
        _GROUP: (services.coordinators, OFFSETS_TOPIC),
        _TRANSACTION: (services.transactions, TRANSACTIONS_TOPIC),
        _SHARE: (services.share_coordinators, SHARE_STATE_TOPIC),
    }[key_type]
    try:
        index = await shards.locate(key)
    except KafkaError as fault:
        return _refused(key, fault.code, fault.message)
    image: Image = services.image
    node = await services.lookup.leader(topic, index)
    broker = image.brokers.get(node)
    endpoint = None if broker is None else broker.endpoint(session.peer.listener)
    if endpoint is None:
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=node, host=endpoint.host, port=endpoint.port, error_message="")


def _forbidden(session: Session, key_type: int, key: str) -> ErrorCode | None:
    if key_type == _GROUP:
        return refusal(session, Operation.DESCRIBE, key)
    if not is_valid_text(key) or (key_type == _SHARE and not _is_share_key(key)):
        return ErrorCode.INVALID_REQUEST
    if key_type == _SHARE:
        allowed = session.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER)
        return None if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    allowed = session.allows(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, key)
    return None if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _is_share_key(key: str) -> bool:
    """GROUP:TOPIC ID:PARTITION; the group may have colons of its own."""
    group_and_topic, _, partition = key.rpartition(":")
    group_id, _, topic_id = group_and_topic.rpartition(":")
    try:
        id_from_text(topic_id)
        return bool(group_id) and int(partition) >= 0
    except ValueError:
        return False


def _refused(key: str, code: ErrorCode, message: str | None = None) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
