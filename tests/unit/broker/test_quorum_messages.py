"""The quorum's requests and answers survive the way over the wire, in every version that has room for them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import METADATA_TOPIC
from penstock.broker.apis import controller_served
from penstock.broker.handlers.quorum import describe_quorum
from penstock.broker.handlers.quorum.asking import ask_quorum
from penstock.broker.quorum_answers import answer_of, refusal_of, response_of
from penstock.broker.quorum_requests import message_of, request_of
from penstock.core.raft import rpc
from penstock.core.raft.snapshot import SnapshotId
from penstock.core.raft.voters import Replica, Voter, VoterEndpoint
from penstock.protocol.frames import RequestHeader
from penstock.protocol.generated import describe_quorum_request as described
from penstock.protocol.generated.fetch_request import FetchRequest
from penstock.protocol.generated.vote_request import VoteRequest
from penstock.protocol.registry import APIS, request_class, response_class
from tests.unit.core.raft.raft_bench import Bench, voter

_EPOCHS_FROM = 12
"""the version of Fetch from which a replica says in which epoch its log ends: what does not is refused"""
ONE, TWO = Replica(1, b"1" * 16), Replica(2, b"2" * 16)
ENDPOINTS = (VoterEndpoint("CONTROLLER", "host", 9093), VoterEndpoint("OTHER", "::1", 9094))
VOTER = Voter(2, b"2" * 16, ENDPOINTS, 0, 1)
LEADER = rpc.Leader(2, 7, "host", 9093)
SNAPSHOT = SnapshotId(40, 6)

REQUESTS: list[rpc.Request] = [
    rpc.Vote(7, ONE, TWO, 6, 40, pre_vote=True),
    rpc.BeginEpoch(7, 1, ENDPOINTS, TWO),
    rpc.EndEpoch(7, 1, ENDPOINTS, (TWO, ONE)),
    rpc.Fetch(7, ONE, 40, 6, 39, 1_000, 500),
    rpc.FetchSnapshot(7, ONE, SNAPSHOT, 100, 1_000),
    rpc.AddVoter(VOTER._replace(kraft_version_max=1), 500, when_committed=False),
    rpc.RemoveVoter(TWO),
    rpc.UpdateVoter(7, VOTER),
]
ANSWERS: list[tuple[rpc.Request, rpc.Answer]] = [
    (REQUESTS[0], rpc.VoteAnswer(LEADER, granted=True)),
    (REQUESTS[0], rpc.VoteAnswer(rpc.Leader(-1, 7), error=ErrorCode.FENCED_LEADER_EPOCH)),
    (REQUESTS[1], rpc.EpochAnswer(LEADER)),
    (REQUESTS[2], rpc.EpochAnswer(LEADER, ErrorCode.FENCED_LEADER_EPOCH)),
    (REQUESTS[3], rpc.FetchAnswer(LEADER, ErrorCode.NONE, 39, 3, records=b"batches")),
    (REQUESTS[3], rpc.FetchAnswer(LEADER, ErrorCode.NONE, 39, 3, diverging=(5, 30))),
    (REQUESTS[3], rpc.FetchAnswer(LEADER, ErrorCode.NONE, 39, 3, snapshot=SNAPSHOT)),
    (REQUESTS[3], rpc.FetchAnswer(rpc.Leader(-1, 7), ErrorCode.NOT_LEADER_OR_FOLLOWER)),
    (REQUESTS[4], rpc.SnapshotAnswer(LEADER, SNAPSHOT, ErrorCode.NONE, 500, 100, b"piece")),
    (REQUESTS[7], rpc.ChangeAnswer(LEADER, ErrorCode.NOT_LEADER_OR_FOLLOWER)),
]


def over_the_wire(message: Any, kind: Any) -> Any:
    version = APIS[message.API_KEY].latest_stable
    return kind(message.API_KEY).decode(bytes(message.encode(version)), version)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_a_request_comes_as_it_was_sent(request_: rpc.Request):
    assert request_of(over_the_wire(message_of(request_, "c"), request_class)) == request_


@pytest.mark.parametrize(("request_", "answer"), ANSWERS, ids=lambda one: type(one).__name__)
def test_an_answer_comes_as_it_was_sent(request_: rpc.Request, answer: rpc.Answer):
    key = message_of(request_, "c").API_KEY
    response = response_of(request_, answer)
    version = APIS[key].latest_stable
    assert answer_of(request_, response_class(key).decode(bytes(response.encode(version)), version)) == answer


@pytest.mark.parametrize(("request_", "answer"), ANSWERS, ids=lambda one: type(one).__name__)
def test_an_answer_fits_every_version_that_is_served(request_: rpc.Request, answer: rpc.Answer):
    asked = message_of(request_, "c")
    row = controller_served().find(asked.API_KEY)
    assert row is not None
    oldest = _EPOCHS_FROM if isinstance(request_, rpc.Fetch) else row.min_version
    for version in range(oldest, row.max_version + 1):

        async def respond(_: Any) -> Any:
            return response_of(request_, answer)

        session: Any = SimpleNamespace(
            allows=lambda *_: True, services=SimpleNamespace(quorum=SimpleNamespace(answer=respond))
        )
        told = asyncio.run(ask_quorum(session, RequestHeader(asked.API_KEY, version, 1, None), asked))
        same = response_class(asked.API_KEY).decode(bytes(told.encode(version)), version)
        assert answer_of(request_, same).error is answer.error


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_described_in_every_version(version: int):
    bench = Bench()
    bench.lead()
    session: Any = SimpleNamespace(
        allows=lambda *_: True, services=SimpleNamespace(quorum=SimpleNamespace(raft=bench.raft), clock=bench.clock)
    )
    partition = described.PartitionData(partition_index=0)
    asked = described.DescribeQuorumRequest(
        topics=[described.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])]
    )
    answer = describe_quorum.handle(session, RequestHeader(asked.API_KEY, version, 1, None), asked)
    answer = type(answer).decode(bytes(answer.encode(version)), version)
    (voters,) = [one.current_voters for topic in answer.topics for one in topic.partitions]
    assert [one.replica_id for one in voters] == [1, 2, 3]
    directories = [voter(id_).directory_id if version == 2 else bytes(16) for id_ in (1, 2, 3)]
    assert [one.replica_directory_id for one in voters] == directories
    assert [one.node_id for one in answer.nodes] == ([1, 2, 3] if version == 2 else [])


@pytest.mark.parametrize("request_", [REQUESTS[5], REQUESTS[6]], ids=lambda one: type(one).__name__)
def test_a_change_s_answer_says_what_is_wrong_but_not_who_leads(request_: rpc.Request):
    response = response_of(request_, rpc.ChangeAnswer(LEADER, ErrorCode.VOTER_NOT_FOUND, "why"))
    told = rpc.Leader(-1, rpc.UNTOLD_EPOCH)
    assert answer_of(request_, response) == rpc.ChangeAnswer(told, ErrorCode.VOTER_NOT_FOUND, "why")


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_a_refusal_of_the_whole_is_no_answer(request_: rpc.Request):
    refused = refusal_of(message_of(request_, "c").API_KEY, ErrorCode.INCONSISTENT_CLUSTER_ID)
    if isinstance(request_, (rpc.AddVoter, rpc.RemoveVoter, rpc.UpdateVoter)):
        assert answer_of(request_, refused).error is ErrorCode.INCONSISTENT_CLUSTER_ID
    else:
        with pytest.raises(KafkaError) as fault:
            answer_of(request_, refused)
        assert fault.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize("message", [VoteRequest(), FetchRequest()])
def test_a_request_about_something_else_is_refused(message: Any):
    with pytest.raises(KafkaError) as fault:
        request_of(message)
    assert fault.value.code is ErrorCode.INVALID_REQUEST


def test_a_fetch_of_another_partition_or_without_epochs_is_refused():
    for change in ({"partition": 1}, {"fetch_offset": -1}, {"last_fetched_epoch": -1}, {"current_leader_epoch": -1}):
        message: Any = message_of(REQUESTS[3], "c")
        for name, value in change.items():
            setattr(message.topics[0].partitions[0], name, value)
        with pytest.raises(KafkaError) as fault:
            request_of(message)
        assert fault.value.code is ErrorCode.INVALID_REQUEST
