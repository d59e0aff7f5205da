"""DescribeLogDirs 1-5: how large each partition is, and how much room the disk has (KIP-827, KIP-1066)."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.broker.network.session import Session
from penstock.core.replication.partition import Partition
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.generated.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(session: Session, header: RequestHeader, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not session.allows(Operation.DESCRIBE, Resource.CLUSTER):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    partitions = session.services.partitions
    wanted = None if request.topics is None else {(t.topic, index) for t in request.topics for index in t.partitions}
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in partitions.all():
        if wanted is None or partition.name in wanted:
            topics.setdefault(partition.name.topic, []).append(_partition(partition))
    result = DescribeLogDirsResult(
        log_dir=partitions.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()],
        total_bytes=partitions.disk.total_bytes(),
        usable_bytes=partitions.disk.free_bytes(),
        is_cordoned=_is_cordoned(session),
    )
    return DescribeLogDirsResponse(results=[result])


def _is_cordoned(session: Session) -> bool:
    services = session.services
    own = services.image.brokers.get(services.node.id)
    return own is not None and bool(own.cordoned)


def _partition(partition: Partition) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=partition.name.partition, partition_size=partition.log.size_bytes, offset_lag=0
    )
