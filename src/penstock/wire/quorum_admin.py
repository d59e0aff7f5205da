"""The metadata quorum, asked from outside."""

from __future__ import annotations

from penstock.base.ids import METADATA_TOPIC
from penstock.protocol.generated import describe_quorum_request as asked
from penstock.protocol.generated.describe_quorum_response import DescribeQuorumResponse, PartitionData
from penstock.wire.cluster import Cluster
from penstock.wire.conversation import Conversation
from penstock.wire.routes import ask_any


def describe_quorum(cluster: Cluster) -> Conversation[PartitionData]:
    """Leader, epoch, voters and observers, and how far each of them is."""
    topic = asked.TopicData(topic_name=METADATA_TOPIC, partitions=[asked.PartitionData(partition_index=0)])
    answer = yield from ask_any(
        cluster,
        asked.DescribeQuorumRequest(topics=[topic]),
        DescribeQuorumResponse,
        lambda reply: reply.error_code or next((p.error_code for t in reply.topics for p in t.partitions), 0),
    )
    return answer.topics[0].partitions[0]
