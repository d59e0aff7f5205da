"""DescribeQuorum 0-2 (KIP-595, KIP-836, KIP-853): who leads the metadata quorum and how far everybody else is.

A broker passes it on to the active controller. Versions 1+ tell when a replica last fetched and was caught up, 2+ its
directory and where the voters listen.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import METADATA_TOPIC, NO_ID
from penstock.broker.network.session import Session
from penstock.core.raft.describe import describe
from penstock.core.security.acl import Operation, Resource
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated.describe_quorum_request import DescribeQuorumRequest
from penstock.protocol.generated.describe_quorum_response import DescribeQuorumResponse, PartitionData, TopicData

_DIRECTORIES_FROM = 2


def handle(session: Session, header: RequestHeader, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not session.allows(Operation.DESCRIBE, Resource.CLUSTER):
        return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    asked = [(topic.topic_name, one.partition_index) for topic in request.topics for one in topic.partitions]
    if asked != [(METADATA_TOPIC, 0)]:
        return _unknown(request)
    services = session.services
    response = describe(services.quorum.raft, services.clock.monotonic_ms(), services.clock.wall_ms())
    return response if header.api_version >= _DIRECTORIES_FROM else _without_directories(response)


def _without_directories(response: DescribeQuorumResponse) -> DescribeQuorumResponse:
    response.nodes = []
    for topic in response.topics:
        for one in topic.partitions:
            for replica in (*one.current_voters, *one.observers):
                replica.replica_directory_id = NO_ID
    return response


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return DescribeQuorumResponse(
        topics=[
            TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    PartitionData(partition_index=one.partition_index, error_code=error) for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
