"""Metadata 0-13: brokers, topics, leaders; creates a missing topic where that is wanted (KIP-516 ids, KIP-700).

Versions: v0 has no "all topics" but the empty list; v1+ asks for all with null; v4+ may forbid creation; v8-10 carry
the cluster's authorized operations; v10 and v11 tell ids but may not be asked by them (KAFKA-13560), v12+ may; v13 has
a top-level error. The listener asked is answered with its own addresses.

A broker that was killed leads in the metadata until it is fenced, for half a second and more. Where its copies here see
that nobody listens there any more, its partitions have no leader already: a client that is told so asks again within a
tenth of a second, while one that is sent to the dead broker tries that first.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import INTERNAL_TOPICS, NO_ID, topic_name_fault
from penstock.broker.network.session import Session
from penstock.core.metadata.image import NO_LEADER, Image, Partition, Topic
from penstock.core.security.acl import Operation, Resource
from penstock.core.security.authorizer import OPERATIONS_NOT_ASKED
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_MAY_FORBID_CREATION_FROM = 4
_BY_ID_FROM = 12


async def handle(session: Session, header: RequestHeader, request: MetadataRequest) -> MetadataResponse:
    services = session.services
    may_create = request.allow_auto_topic_creation or header.api_version < _MAY_FORBID_CREATION_FROM
    asked = _asked(header.api_version, request)
    if asked is not None and header.api_version < _BY_ID_FROM and any(_is_by_id(one) for one in asked):
        return MetadataResponse(topics=[_invalid(one) for one in asked])
    if asked is not None and may_create and services.config.auto_create_topics:
        await _create_missing(session, asked)
    image: Image = services.image
    gone = services.copying.gone_leaders()
    wants_operations = request.include_topic_authorized_operations
    if asked is None:
        topics = [
            _topic(session, image, topic, gone, wants_operations)
            for topic in image.topics.values()
            if session.allows(Operation.DESCRIBE, Resource.TOPIC, topic.name)
        ]
    else:
        topics = [_one(session, image, one, gone, wants_operations) for one in asked]
    return MetadataResponse(
        brokers=_brokers(session, image),
        cluster_id=services.cluster_id,
        controller_id=services.controller_id(),
        topics=topics,
        cluster_authorized_operations=_cluster_operations(session, header.api_version, request),
    )


def _asked(version: int, request: MetadataRequest) -> list[MetadataRequestTopic] | None:
    """None: all topics."""
    if request.topics is None or (version == 0 and not request.topics):
        return None
    return request.topics


def _is_by_id(topic: MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != NO_ID


def _invalid(topic: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)


async def _create_missing(session: Session, asked: list[MetadataRequestTopic]) -> None:
    image: Image = session.services.image
    missing = [
        one.name
        for one in asked
        if one.name is not None and one.topic_id == NO_ID and image.topic(one.name) is None
        if topic_name_fault(one.name) is None and session.allows(Operation.CREATE, Resource.TOPIC, one.name)
    ]
    if missing:
        await session.services.topic_creation.create_missing(missing)


def _one(
    session: Session, image: Image, one: MetadataRequestTopic, gone: frozenset[int], wants_operations: bool
) -> MetadataResponseTopic:
    if one.topic_id != NO_ID:
        found = image.topic_by_id(one.topic_id)
        if found is None or not session.allows(Operation.DESCRIBE, Resource.TOPIC, found.name):
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=one.topic_id, name=None)
        return _topic(session, image, found, gone, wants_operations)
    name = one.name or ""
    if not session.allows(Operation.DESCRIBE, Resource.TOPIC, name):
        return MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
    found = image.topic(name)
    if found is not None:
        return _topic(session, image, found, gone, wants_operations)
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if topic_name_fault(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _topic(
    session: Session, image: Image, topic: Topic, gone: frozenset[int], wants_operations: bool
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, topic.partitions[index], gone) for index in sorted(topic.partitions)],
        topic_authorized_operations=session.operation_bits(Resource.TOPIC, topic.name)
        if wants_operations
        else OPERATIONS_NOT_ASKED,
    )


def _partition(image: Image, index: int, partition: Partition, gone: frozenset[int]) -> MetadataResponsePartition:
    leader = NO_LEADER if partition.leader in gone else partition.leader
    return MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader == NO_LEADER else ErrorCode.NONE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=image.offline_replicas(partition),
    )


def _brokers(session: Session, image: Image) -> list[MetadataResponseBroker]:
    listener = session.peer.listener
    brokers = []
    for broker in image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None and not broker.fenced:
            brokers.append(
                MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            )
    return brokers


def _cluster_operations(session: Session, version: int, request: MetadataRequest) -> int:
    if 8 <= version <= 10 and request.include_cluster_authorized_operations:
        return session.operation_bits(Resource.CLUSTER)
    return OPERATIONS_NOT_ASKED
