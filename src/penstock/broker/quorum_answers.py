"""The quorum's answers as messages of Kafka's protocol, and back."""

from __future__ import annotations

from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from penstock.broker.quorum_requests import only_partition
from penstock.core.raft import rpc
from penstock.core.raft.snapshot import SnapshotId
from penstock.protocol.generated import begin_quorum_epoch_response as begun
from penstock.protocol.generated import end_quorum_epoch_response as ended
from penstock.protocol.generated import fetch_response as fetched
from penstock.protocol.generated import fetch_snapshot_response as fetched_snapshot
from penstock.protocol.generated import update_raft_voter_response as updated
from penstock.protocol.generated import vote_response as voted
from penstock.protocol.generated.add_raft_voter_response import AddRaftVoterResponse
from penstock.protocol.generated.remove_raft_voter_response import RemoveRaftVoterResponse
from penstock.protocol.message import Message
from penstock.protocol.registry import response_class
from penstock.wire.errors import error_code

_ADD_VOTER = 80
_REMOVE_VOTER = 81


def response_of(request: rpc.Request, answer: rpc.Answer) -> Message:
    if isinstance(answer, rpc.VoteAnswer):
        vote = voted.PartitionData(
            error_code=answer.error,
            leader_id=answer.leader.id,
            leader_epoch=answer.leader.epoch,
            vote_granted=answer.granted,
        )
        topic = voted.TopicData(topic_name=METADATA_TOPIC, partitions=[vote])
        return voted.VoteResponse(topics=[topic], node_endpoints=_place(answer.leader, voted.NodeEndpoint))
    if isinstance(answer, rpc.EpochAnswer):
        return _epoch_response(begun if isinstance(request, rpc.BeginEpoch) else ended, answer)
    if isinstance(answer, rpc.FetchAnswer):
        return _fetch_response(answer)
    if isinstance(answer, rpc.SnapshotAnswer):
        return _snapshot_response(answer)
    return _change_response(request, answer)


def refusal_of(api_key: int, error: ErrorCode, message: str | None = None) -> Message:
    """What could not even be looked at."""
    response: Any = response_class(api_key)()
    response.error_code = int(error)
    if api_key in (_ADD_VOTER, _REMOVE_VOTER):
        response.error_message = message
    return response  # type: ignore[no-any-return]  # the registry's classes come untyped


def answer_of(request: rpc.Request, response: Any) -> rpc.Answer:
    """KafkaError where the request as a whole was refused."""
    if isinstance(response, (AddRaftVoterResponse, RemoveRaftVoterResponse)):
        return rpc.ChangeAnswer(_unsaid(), error_code(response.error_code), response.error_message)
    if isinstance(response, updated.UpdateRaftVoterResponse):
        at = response.current_leader
        leader = rpc.Leader(at.leader_id, at.leader_epoch, at.host, at.port)
        return rpc.ChangeAnswer(leader, error_code(response.error_code))
    if response.error_code:
        raise KafkaError(error_code(response.error_code), "the request was refused by another node of the quorum")
    if isinstance(response, fetched.FetchResponse):
        return _fetch_answer(response)
    if isinstance(response, fetched_snapshot.FetchSnapshotResponse):
        return _snapshot_answer(response)
    one = only_partition(response.topics, "topic_name", "partition_index")
    leader = _leader(one.leader_id, one.leader_epoch, response.node_endpoints)
    if isinstance(response, voted.VoteResponse):
        return rpc.VoteAnswer(leader, one.vote_granted, error_code(one.error_code))
    return rpc.EpochAnswer(leader, error_code(one.error_code))


def _unsaid() -> rpc.Leader:
    """An answer that does not tell who leads which epoch."""
    return rpc.Leader(rpc.NO_LEADER, rpc.UNTOLD_EPOCH)


def _leader(id_: int, epoch: int, endpoints: Any) -> rpc.Leader:
    place = next((one for one in endpoints if one.node_id == id_), None)
    return rpc.Leader(id_, epoch) if place is None else rpc.Leader(id_, epoch, place.host, place.port)


def _place(leader: rpc.Leader, kind: Any) -> list[Any]:
    return [kind(node_id=leader.id, host=leader.host, port=leader.port)] if leader.port else []


def _epoch_response(module: Any, answer: rpc.EpochAnswer) -> Message:
    partition = module.PartitionData(
        error_code=answer.error, leader_id=answer.leader.id, leader_epoch=answer.leader.epoch
    )
    topic = module.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    kind = begun.BeginQuorumEpochResponse if module is begun else ended.EndQuorumEpochResponse
    return kind(topics=[topic], node_endpoints=_place(answer.leader, module.NodeEndpoint))


def _fetch_response(answer: rpc.FetchAnswer) -> Message:
    partition = fetched.PartitionData(
        error_code=answer.error,
        high_watermark=answer.high_watermark,
        log_start_offset=answer.start_offset,
        current_leader=fetched.LeaderIdAndEpoch(leader_id=answer.leader.id, leader_epoch=answer.leader.epoch),
        records=bytes(answer.records),
    )
    if answer.diverging is not None:
        partition.diverging_epoch = fetched.EpochEndOffset(epoch=answer.diverging[0], end_offset=answer.diverging[1])
    if answer.snapshot is not None:
        partition.snapshot_id = fetched.SnapshotId(end_offset=answer.snapshot.offset, epoch=answer.snapshot.epoch)
    topic = fetched.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])
    return fetched.FetchResponse(responses=[topic], node_endpoints=_place(answer.leader, fetched.NodeEndpoint))


def _fetch_answer(response: fetched.FetchResponse) -> rpc.FetchAnswer:
    by_id = response.responses and response.responses[0].topic_id == METADATA_TOPIC_ID
    one = only_partition(response.responses, "topic_id" if by_id else "topic", "partition_index")
    diverging, snapshot = one.diverging_epoch, one.snapshot_id
    return rpc.FetchAnswer(
        _leader(one.current_leader.leader_id, one.current_leader.leader_epoch, response.node_endpoints),
        error_code(one.error_code),
        one.high_watermark,
        one.log_start_offset,
        (diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        SnapshotId(snapshot.end_offset, snapshot.epoch) if snapshot.epoch >= 0 else None,
        bytes(one.records or b""),
    )


def _snapshot_response(answer: rpc.SnapshotAnswer) -> Message:
    snapshot = answer.snapshot
    partition = fetched_snapshot.PartitionSnapshot(
        error_code=answer.error,
        snapshot_id=fetched_snapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        current_leader=fetched_snapshot.LeaderIdAndEpoch(leader_id=answer.leader.id, leader_epoch=answer.leader.epoch),
        size=answer.size,
        position=answer.position,
        unaligned_records=bytes(answer.data),
    )
    topic = fetched_snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    places = _place(answer.leader, fetched_snapshot.NodeEndpoint)
    return fetched_snapshot.FetchSnapshotResponse(topics=[topic], node_endpoints=places)


def _snapshot_answer(response: fetched_snapshot.FetchSnapshotResponse) -> rpc.SnapshotAnswer:
    one = only_partition(response.topics, "name", "index")
    return rpc.SnapshotAnswer(
        _leader(one.current_leader.leader_id, one.current_leader.leader_epoch, response.node_endpoints),
        SnapshotId(one.snapshot_id.end_offset, one.snapshot_id.epoch),
        error_code(one.error_code),
        one.size,
        one.position,
        bytes(one.unaligned_records),
    )


def _change_response(request: rpc.Request, answer: rpc.ChangeAnswer) -> Message:
    if isinstance(request, rpc.UpdateVoter):
        leader = updated.CurrentLeader(
            leader_id=answer.leader.id,
            leader_epoch=answer.leader.epoch,
            host=answer.leader.host,
            port=answer.leader.port,
        )
        return updated.UpdateRaftVoterResponse(error_code=answer.error, current_leader=leader)
    message = answer.message or (answer.error.name if answer.error else None)
    kind = AddRaftVoterResponse if isinstance(request, rpc.AddVoter) else RemoveRaftVoterResponse
    return kind(error_code=answer.error, error_message=message)
