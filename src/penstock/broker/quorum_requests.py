"""The quorum's requests as messages of Kafka's protocol, and back.

A message could speak of many partitions; these speak of one, `__cluster_metadata-0`.
"""

from __future__ import annotations

from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from penstock.core.raft import rpc
from penstock.core.raft.snapshot import SnapshotId
from penstock.core.raft.voters import Replica, Voter, VoterEndpoint
from penstock.protocol.generated import add_raft_voter_request as adding
from penstock.protocol.generated import begin_quorum_epoch_request as beginning
from penstock.protocol.generated import end_quorum_epoch_request as ending
from penstock.protocol.generated import fetch_request as fetching
from penstock.protocol.generated import fetch_snapshot_request as fetching_snapshot
from penstock.protocol.generated import update_raft_voter_request as updating
from penstock.protocol.generated import vote_request as voting
from penstock.protocol.generated.remove_raft_voter_request import RemoveRaftVoterRequest
from penstock.protocol.message import Message


def message_of(request: rpc.Request, cluster_id: str) -> Message:
    if isinstance(request, rpc.Vote):
        return _vote(request, cluster_id)
    if isinstance(request, rpc.BeginEpoch):
        return _begin_epoch(request, cluster_id)
    if isinstance(request, rpc.EndEpoch):
        return _end_epoch(request, cluster_id)
    if isinstance(request, rpc.Fetch):
        return _fetch(request, cluster_id)
    if isinstance(request, rpc.FetchSnapshot):
        return _fetch_snapshot(request, cluster_id)
    return _change(request, cluster_id)


def request_of(message: Any) -> rpc.Request:
    """KafkaError INVALID_REQUEST where it speaks of another partition than that of the metadata."""
    if isinstance(message, voting.VoteRequest):
        one = only_partition(message.topics, "topic_name", "partition_index")
        return rpc.Vote(
            one.replica_epoch,
            Replica(one.replica_id, one.replica_directory_id),
            Replica(message.voter_id, one.voter_directory_id),
            one.last_offset_epoch,
            one.last_offset,
            one.pre_vote,
        )
    if isinstance(message, beginning.BeginQuorumEpochRequest):
        one = only_partition(message.topics, "topic_name", "partition_index")
        voter = Replica(message.voter_id, one.voter_directory_id)
        return rpc.BeginEpoch(one.leader_epoch, one.leader_id, endpoints_of(message.leader_endpoints), voter)
    if isinstance(message, ending.EndQuorumEpochRequest):
        one = only_partition(message.topics, "topic_name", "partition_index")
        successors = [Replica(c.candidate_id, c.candidate_directory_id) for c in one.preferred_candidates]
        successors = successors or [Replica(id_) for id_ in one.preferred_successors]
        return rpc.EndEpoch(one.leader_epoch, one.leader_id, endpoints_of(message.leader_endpoints), tuple(successors))
    if isinstance(message, fetching.FetchRequest):
        return _fetch_of(message)
    if isinstance(message, fetching_snapshot.FetchSnapshotRequest):
        return _fetch_snapshot_of(message)
    return _change_of(message)


def only_partition(topics: Any, topic_field: str, partition_field: str) -> Any:
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        named = getattr(topics[0], topic_field)
        partition = topics[0].partitions[0]
        if named in (METADATA_TOPIC, METADATA_TOPIC_ID) and getattr(partition, partition_field) == 0:
            return partition
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"the quorum keeps one partition, {METADATA_TOPIC}-0")


def endpoints_of(listeners: Any) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(one.name, one.host, one.port) for one in listeners)


def _vote(request: rpc.Vote, cluster_id: str) -> Message:
    partition = voting.PartitionData(
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.end_offset,
        pre_vote=request.pre_vote,
    )
    topic = voting.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return voting.VoteRequest(cluster_id=cluster_id, voter_id=request.voter.id, topics=[topic])


def _begin_epoch(request: rpc.BeginEpoch, cluster_id: str) -> Message:
    partition = beginning.PartitionData(
        voter_directory_id=request.voter.directory_id, leader_id=request.leader_id, leader_epoch=request.epoch
    )
    return beginning.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=request.voter.id,
        topics=[beginning.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[beginning.LeaderEndpoint(**one._asdict()) for one in request.endpoints],
    )


def _end_epoch(request: rpc.EndEpoch, cluster_id: str) -> Message:
    partition = ending.PartitionData(
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_successors=[one.id for one in request.successors],
        preferred_candidates=[
            ending.ReplicaInfo(candidate_id=one.id, candidate_directory_id=one.directory_id)
            for one in request.successors
        ],
    )
    return ending.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[ending.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[ending.LeaderEndpoint(**one._asdict()) for one in request.endpoints],
    )


def _fetch(request: rpc.Fetch, cluster_id: str) -> Message:
    partition = fetching.FetchPartition(
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_epoch,
        partition_max_bytes=request.max_bytes,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    topic = fetching.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return fetching.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetching.ReplicaState(replica_id=request.replica.id),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[topic],
    )


def _fetch_of(message: fetching.FetchRequest) -> rpc.Fetch:
    by_id = message.topics and message.topics[0].topic_id == METADATA_TOPIC_ID
    one = only_partition(message.topics, "topic_id" if by_id else "topic", "partition")
    replica_id = message.replica_state.replica_id if message.replica_state.replica_id >= 0 else message.replica_id
    if one.fetch_offset < 0 or one.last_fetched_epoch < 0 or one.current_leader_epoch < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a fetch of the metadata log tells its offset and both epochs")
    return rpc.Fetch(
        one.current_leader_epoch,
        Replica(replica_id, one.replica_directory_id),
        one.fetch_offset,
        one.last_fetched_epoch,
        one.high_watermark,
        max(min(one.partition_max_bytes or message.max_bytes, message.max_bytes), 1),
        max(message.max_wait_ms, 0),
    )


def _fetch_snapshot(request: rpc.FetchSnapshot, cluster_id: str) -> Message:
    partition = fetching_snapshot.PartitionSnapshot(
        current_leader_epoch=request.epoch,
        snapshot_id=fetching_snapshot.SnapshotId(end_offset=request.snapshot.offset, epoch=request.snapshot.epoch),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return fetching_snapshot.FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=request.replica.id,
        max_bytes=request.max_bytes,
        topics=[fetching_snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def _fetch_snapshot_of(message: fetching_snapshot.FetchSnapshotRequest) -> rpc.FetchSnapshot:
    one = only_partition(message.topics, "name", "partition")
    return rpc.FetchSnapshot(
        one.current_leader_epoch,
        Replica(message.replica_id, one.replica_directory_id),
        SnapshotId(one.snapshot_id.end_offset, one.snapshot_id.epoch),
        one.position,
        max(message.max_bytes, 1),
    )


def _change(request: rpc.Request, cluster_id: str) -> Message:
    if isinstance(request, rpc.AddVoter):
        voter = request.voter
        return adding.AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=request.timeout_ms,
            voter_id=voter.id,
            voter_directory_id=voter.directory_id,
            listeners=[adding.Listener(**one._asdict()) for one in voter.endpoints],
            ack_when_committed=request.when_committed,
        )
    if isinstance(request, rpc.RemoveVoter):
        return RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=request.replica.id, voter_directory_id=request.replica.directory_id
        )
    assert isinstance(request, rpc.UpdateVoter)
    voter = request.voter
    return updating.UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=request.epoch,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        listeners=[updating.Listener(**one._asdict()) for one in voter.endpoints],
        k_raft_version_feature=updating.KRaftVersionFeature(
            min_supported_version=voter.kraft_version_min, max_supported_version=voter.kraft_version_max
        ),
    )


def _change_of(message: Any) -> rpc.Request:
    if isinstance(message, adding.AddRaftVoterRequest):
        voter = Voter(message.voter_id, message.voter_directory_id, endpoints_of(message.listeners))
        return rpc.AddVoter(voter, message.timeout_ms, message.ack_when_committed)
    if isinstance(message, RemoveRaftVoterRequest):
        return rpc.RemoveVoter(Replica(message.voter_id, message.voter_directory_id))
    assert isinstance(message, updating.UpdateRaftVoterRequest)
    feature = message.k_raft_version_feature
    voter = Voter(
        message.voter_id,
        message.voter_directory_id,
        endpoints_of(message.listeners),
        feature.min_supported_version,
        feature.max_supported_version,
    )
    return rpc.UpdateVoter(message.current_leader_epoch, voter)
