"""The quorum as its leader sees it: how far every voter and observer is."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.base.ids import METADATA_TOPIC
from penstock.core.raft.leader import Leading, Progress
from penstock.core.raft.raft import Raft
from penstock.core.raft.voters import Replica
from penstock.protocol.generated.describe_quorum_response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)


def describe(raft: Raft, now_ms: int, wall_ms: int) -> DescribeQuorumResponse:
    """NOT_LEADER_OR_FOLLOWER where this node does not lead. `wall_ms`: what the clock on the wall shows at `now_ms`."""
    role = raft.role
    partition = PartitionData(leader_id=raft.leader.id, leader_epoch=raft.epoch, high_watermark=raft.high_watermark)
    response = DescribeQuorumResponse(topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[partition])])
    if not isinstance(role, Leading):
        partition.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return response
    later_ms = wall_ms - now_ms
    for voter in raft.history.voters:
        known = role.progress_of(voter) or Progress()
        if voter.id == raft.me.id:
            known = Progress(raft.log.end_offset, now_ms, now_ms)
        partition.current_voters.append(_state(voter.replica, known, later_ms))
        listeners = [Listener(name=one.name, host=one.host, port=one.port) for one in voter.endpoints]
        response.nodes.append(Node(node_id=voter.id, listeners=listeners))
    for replica, known in role.observers(raft, now_ms).items():
        partition.observers.append(_state(replica, known, later_ms))
    return response


def _state(replica: Replica, known: Progress, later_ms: int) -> ReplicaState:
    return ReplicaState(
        replica_id=replica.id,
        replica_directory_id=replica.directory_id,
        log_end_offset=known.end_offset,
        last_fetch_timestamp=known.fetched_ms + later_ms if known.fetched_ms >= 0 else -1,
        last_caught_up_timestamp=known.caught_up_ms + later_ms if known.caught_up_ms >= 0 else -1,
    )
