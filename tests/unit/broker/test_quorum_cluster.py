"""A quorum of several real nodes: they elect a leader, follow it, lose it, and come and go."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.raft.describe import describe
from penstock.core.raft.rpc import AddVoter, ChangeAnswer, RemoveVoter
from penstock.protocol.generated.config_record import ConfigRecord
from tests.unit.broker.quorum_cluster import Cluster, run


@pytest.mark.parametrize("dynamic", [False, True])
def test_three_nodes_elect_a_leader_and_have_the_same_metadata(tmp_path: Path, dynamic: bool):
    cluster = Cluster(tmp_path, dynamic=dynamic)

    async def work() -> None:
        await cluster.start(1, 2, 3)
        await cluster.write("x", "1")
        await cluster.everywhere("x", "1")
        leader = await cluster.a_leader()
        assert leader.kraft_version == (1 if dynamic else 0)
        for number in (1, 2, 3):
            quorum = cluster.quorum(number)
            assert (quorum.leader_id, quorum.epoch) == (leader.identity.node_id, leader.epoch)
            assert quorum.controller_address() == (quorum.leader_id, "127.0.0.1", cluster.ports[quorum.leader_id])
            assert sorted(quorum.image.brokers) == sorted(quorum.image.controllers) == [1, 2, 3]

    run(cluster, work)


def test_a_follower_decides_nothing(tmp_path: Path):
    cluster = Cluster(tmp_path)

    async def work() -> None:
        await cluster.start(1, 2, 3)
        leader = await cluster.a_leader()
        other = next(number for number in (1, 2, 3) if number != leader.identity.node_id)
        with pytest.raises(KafkaError) as refusal:
            await cluster.quorum(other).propose([ConfigRecord(resource_type=4, name="x", value="1")])
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER

    run(cluster, work)


def test_the_quorum_goes_on_without_its_leader_which_catches_up_later(tmp_path: Path):
    cluster = Cluster(tmp_path)

    async def work() -> None:
        await cluster.start(1, 2, 3)
        before = await cluster.a_leader()
        told: list[tuple[bool, int]] = []
        before.on_leadership(lambda leads, epoch: told.append((leads, epoch)))
        gone = before.identity.node_id
        await cluster.stop(gone)
        assert told == [(True, before.epoch), (False, before.epoch)]
        await cluster.write("x", "without")
        after = await cluster.a_leader()
        assert after.epoch > before.epoch
        await cluster.start(gone)
        await cluster.everywhere("x", "without")
        await cluster.until(lambda: cluster.quorum(gone).leader_id == cluster.leader)

    run(cluster, work)


def test_a_proposal_whose_leader_goes_is_not_left_waiting(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.configs["controller.quorum.fetch.timeout.ms"] = "400"

    async def work() -> None:
        await cluster.start(1, 2, 3)
        leader = await cluster.a_leader()
        others = [number for number in (1, 2, 3) if number != leader.identity.node_id]
        for number in others:
            cluster.nodes[number].services.quorum._closed = True  # they do not answer any more
        proposal = leader.propose([ConfigRecord(resource_type=4, name="x", value="1")])
        with pytest.raises(KafkaError) as refusal:
            async with asyncio.timeout(20):
                await proposal
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER
        assert not leader.is_leader
        for number in others:
            cluster.nodes[number].services.quorum._closed = False

    run(cluster, work)


def test_a_node_that_is_far_behind_begins_with_a_snapshot(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.configs["metadata.log.max.record.bytes.between.snapshots"] = "2000"
    cluster.configs["metadata.max.retention.bytes"] = "0"
    cluster.configs["controller.quorum.fetch.snapshot.max.bytes"] = "500"

    async def work() -> None:
        await cluster.start(1, 2, 3)
        await cluster.write("y", "early")
        await cluster.everywhere("y", "early")
        leader = await cluster.a_leader()
        behind = next(number for number in (1, 2, 3) if number != leader.identity.node_id)
        await cluster.stop(behind)
        for at in range(200):
            await cluster.write("x", str(at))
        await cluster.until(lambda: leader.raft.log.start_offset > 50)
        await cluster.start(behind)
        await cluster.everywhere("x", "199")
        quorum = cluster.quorum(behind)
        assert quorum.raft.log.start_offset > 50
        assert quorum.image.configs == leader.image.configs
        assert cluster.read(behind, "y") == "early"
        await cluster.stop(behind)
        await cluster.start(behind)
        await cluster.everywhere("x", "199")

    run(cluster, work)


def test_a_node_that_is_only_a_broker_follows_and_never_votes(tmp_path: Path):
    cluster = Cluster(tmp_path)

    async def work() -> None:
        await asyncio.gather(
            cluster.start(1, 2, 3, process_roles="controller"),
            cluster.start(7, process_roles="broker"),
        )
        await cluster.write("x", "1")
        await cluster.everywhere("x", "1")
        leader = await cluster.a_leader()
        assert cluster.quorum(7).role == "observer"
        assert sorted(leader.image.brokers) == [7]
        assert sorted(leader.image.controllers) == [1, 2, 3]
        (topic,) = describe(leader.raft, 1, 1).topics
        assert [one.replica_id for one in topic.partitions[0].current_voters] == [1, 2, 3]
        assert [one.replica_id for one in topic.partitions[0].observers] == [7]
        await cluster.stop(leader.identity.node_id)
        await cluster.write("x", "2")
        await cluster.everywhere("x", "2")

    run(cluster, work)


def test_a_controller_joins_the_voters_by_itself_and_is_removed_again(tmp_path: Path):
    cluster = Cluster(tmp_path, dynamic=True)
    cluster.configs["controller.quorum.fetch.timeout.ms"] = "500"

    async def work() -> None:
        await cluster.start(1, 2, 3)
        await cluster.start(8, controller_quorum_auto_join_enable="true")
        leader = await cluster.a_leader()
        await cluster.until(lambda: [one.id for one in leader.raft.history.voters] == [1, 2, 3, 8])
        await cluster.until(lambda: cluster.quorum(8).raft.is_voter and cluster.quorum(8).role == "follower")
        await cluster.stop(8)
        old = next(one.replica for one in leader.raft.history.voters if one.id == 8)
        leader = await cluster.a_leader()
        answer = await leader.ask(RemoveVoter(old))
        assert answer == ChangeAnswer(leader.raft.address())
        assert [one.id for one in leader.raft.history.voters] == [1, 2, 3]

    run(cluster, work)


def test_a_node_that_nobody_reaches_does_not_become_a_voter(tmp_path: Path):
    cluster = Cluster(tmp_path, (1,), dynamic=True)

    async def work() -> None:
        await cluster.start(1)
        await cluster.start(9, process_roles="broker")
        leader = await cluster.a_leader()
        await cluster.until(lambda: len(describe(leader.raft, 1, 1).topics[0].partitions[0].observers) == 1)
        observer = cluster.quorum(9)
        voter = observer.raft.me._replace(endpoints=leader.controller_endpoints[:0])
        answer = await leader._ask_if_reachable(AddVoter(voter, 1_000))
        assert answer.error is ErrorCode.REQUEST_TIMED_OUT
        assert [one.id for one in leader.raft.history.voters] == [1]

    run(cluster, work)
