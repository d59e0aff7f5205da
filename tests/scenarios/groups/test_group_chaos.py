"""Members that join, sync, commit, leave, crash and come back in any order, while time passes and appends fail.

After every step: the store equals a replay of the log, and of the compacted log; in one generation nobody is told of
two leaders or an assignment other than the leader's; generations do not go back; whoever waits is answered in the end.
"""

from __future__ import annotations

from typing import Any

from group_driver import GroupDriver
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.coordinator.result import CoordinatorRecord
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.state import RequestContext
from penstock.core.groups.store import Store
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from penstock.protocol.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

CLIENTS = ("a", "b", "c", "d")
STATIC = {"c": "i1", "d": "i2"}
clients = st.sampled_from(CLIENTS)
versions = st.sampled_from([3, 9])


def replayed(log: list[CoordinatorRecord]) -> Store:
    store = Store()
    for offset, record in enumerate(log):
        store.replay(record, offset, -1)
    return store


def compacted(log: list[CoordinatorRecord]) -> Store:
    """Only the last record of each key is left, and no tombstone, each at its offset."""
    last = {record.key: offset for offset, record in enumerate(log)}
    store = Store()
    for offset, record in enumerate(log):
        if last[record.key] == offset and record.value is not None:
            store.replay(record, offset, -1)
    return store


class Client:
    """What one consumer believes."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.is_leader = False
        self.others: list[str] = []


class GroupChaos(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = GroupDriver(GroupConfig())
        self.clients = {name: Client() for name in CLIENTS}
        self.leaders: dict[int, str] = {}
        self.assigned: dict[int, dict[str, bytes]] = {}
        self.told: dict[tuple[int, str], bytes] = {}
        self.generation = 0
        self.stored_generation = 0
        self.committed = -1
        self.requests = 0

    def ask(self, operation: Any, request: Any, context: Any, then: Any = None) -> None:
        self.requests += 1

        def show(answer: Any) -> str:
            if then is not None:
                then(answer)
            return "answered"

        self.driver.request(f"r{self.requests}", operation, request, context, show)

    @initialize(delay=st.sampled_from([0, 3_000]))
    def begin(self, delay: int) -> None:
        self.driver = GroupDriver(GroupConfig(initial_rebalance_delay_ms=delay))

    @rule(name=clients, version=versions, topics=st.sampled_from(["t", "u"]))
    def join(self, name: str, version: int, topics: str) -> None:
        client = self.clients[name]
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=client.member_id,
            group_instance_id=STATIC.get(name),
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=topics.encode())],
        )

        def joined(answer: Any) -> None:
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                client.member_id = answer.member_id
            elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                client.member_id = ""
            elif not answer.error_code:
                self.saw_generation(client, answer, version)

        self.ask(self.driver.shard.join, request, RequestContext(version, name), joined)

    def saw_generation(self, client: Client, answer: Any, version: int) -> None:
        client.member_id, client.generation = answer.member_id, answer.generation_id
        client.is_leader = answer.leader == answer.member_id
        client.others = [member.member_id for member in answer.members]
        assert answer.generation_id >= self.stored_generation
        self.generation = max(self.generation, answer.generation_id)
        if client.is_leader and not answer.skip_assignment:
            assert client.others, "a leader is told who to assign to"

    @rule(name=clients)
    def sync(self, name: str) -> None:
        client = self.clients[name]
        assignments = {}
        if client.is_leader:
            assignments = {member: f"{client.generation}/{member}".encode() for member in client.others}
        generation = client.generation
        request = SyncGroupRequest(
            group_id="g",
            generation_id=generation,
            member_id=client.member_id,
            group_instance_id=STATIC.get(name),
            assignments=[SyncGroupRequestAssignment(member_id=m, assignment=a) for m, a in assignments.items()],
        )
        member_id = client.member_id

        def synced(answer: Any) -> None:
            if answer.error_code:
                return
            stored = self.driver.shard.state.store.groups["g"]
            parts = {member.member_id: member.assignment for member in stored.members}
            assert stored.generation == generation, "an assignment was handed out before it was stored"
            assert parts[member_id] == answer.assignment, "not what the leader assigned"
            told = self.told.setdefault((generation, member_id), answer.assignment)
            assert told == answer.assignment, "two assignments in one generation"

        self.ask(self.driver.shard.sync, request, RequestContext(5), synced)

    @rule(name=clients)
    def heartbeat(self, name: str) -> None:
        client = self.clients[name]
        request = HeartbeatRequest(
            group_id="g",
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=STATIC.get(name),
        )
        self.ask(self.driver.shard.heartbeat, request, RequestContext(4))

    @rule(name=clients)
    def leave(self, name: str) -> None:
        client = self.clients[name]
        request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=client.member_id)])
        self.ask(self.driver.shard.leave, request, RequestContext(5))
        self.clients[name] = Client()

    @rule(name=clients)
    def crash(self, name: str) -> None:
        self.clients[name] = Client()

    @rule(name=clients, offset=st.integers(0, 100))
    def commit(self, name: str, offset: int) -> None:
        client = self.clients[name]
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=client.generation,
            member_id=client.member_id,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        is_current = client.generation == -1 or client.generation == self.current_generation()

        def answered(answer: Any) -> None:
            assert is_current, "a commit of an old generation was taken"
            self.committed = offset

        self.ask(self.driver.shard.commit_offsets, request, RequestContext(9), answered)

    def current_generation(self) -> int:
        group = self.driver.shard.state.groups.get("g")
        return -1 if group is None else group.generation

    @rule()
    def fetch(self) -> None:
        def fetched(answer: Any) -> None:
            offsets = [each.committed_offset for topic in answer.topics for each in topic.partitions]
            assert offsets == ([] if self.committed == -1 else [self.committed])

        request = OffsetFetchRequestGroup(group_id="g", topics=None)
        self.ask(self.driver.shard.fetch_offsets, request, False, fetched)

    @rule()
    def delete(self) -> None:
        def deleted(answer: Any) -> None:
            if not answer[0].error_code:
                self.committed = -1
                self.generation = self.stored_generation = 0
                self.told.clear()

        self.ask(self.driver.shard.delete_groups, ["g"], RequestContext(2), deleted)

    @rule(ms=st.sampled_from([0, 1_000, 5_000, 9_000, 25_000]))
    def wait(self, ms: int) -> None:
        self.driver.advance(ms)

    @rule(error=st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]))
    def next_append_fails(self, error: ErrorCode) -> None:
        self.driver.append_error = error

    @rule()
    @precondition(lambda self: not self.driver.append_error)
    def fail_over(self) -> None:
        self.driver.fail_over()

    @invariant()
    def the_store_is_the_log_replayed(self) -> None:
        store = self.driver.shard.state.store
        assert store == replayed(self.driver.log)
        assert store == compacted(self.driver.log)

    @invariant()
    def stored_generations_do_not_go_back(self) -> None:
        stored = self.driver.shard.state.store.groups.get("g")
        if stored is not None:
            assert stored.generation >= self.stored_generation
            self.stored_generation = stored.generation

    @invariant()
    def a_stable_group_loads_as_it_is(self) -> None:
        runtime = self.driver.reloaded()
        runtime.activate(len(self.driver.log), self.driver.now)
        runtime.shard.check()

    def teardown(self) -> None:
        """Nobody does anything any more: everybody is answered, and the group is empty or gone."""
        self.driver.append_error = None
        self.driver.advance(400_000)
        assert not self.driver.waiting
        group = self.driver.shard.state.groups.get("g")
        assert group is None or (not group.members and not group.pending_join)
        assert not any(isinstance(answer, KafkaError) and answer.code == -1 for answer in self.driver.answers.values())


TestGroupChaos = GroupChaos.TestCase
TestGroupChaos.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
