"""Members of groups for the proof of rebalances: no records are read, only partitions are taken and let go."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, NamedTuple
from uuid import uuid4

from penstock.base.errors import ErrorCode
from penstock.protocol.generated.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.generated.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.message import Message
from penstock.wire.aio import Client

SESSION_MS = 6_000
INTERVAL_S = 1.0
TRY_AGAIN = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


class Topic(NamedTuple):
    name: str
    id: bytes
    partitions: int


class Ledger:
    """Who has which partition, as the members themselves see it."""

    def __init__(self) -> None:
        self.owners: dict[int, Member] = {}
        self.doubles: list[tuple[int, str, str]] = []

    def take(self, member: Member, partitions: set[int]) -> None:
        for partition in partitions:
            known = self.owners.get(partition)
            if known is not None and known is not member:
                self.doubles.append((partition, known.member_id, member.member_id))
            self.owners[partition] = member

    def let_go(self, member: Member, partitions: set[int]) -> None:
        for partition in partitions:
            if self.owners.get(partition) is member:
                del self.owners[partition]

    def shares(self, members: list[Member]) -> list[int]:
        return sorted(len(member.owned) for member in members)

    def is_shared(self, members: list[Member], partitions: int) -> bool:
        shares = self.shares(members)
        return len(self.owners) == sum(shares) == partitions and shares[-1] - shares[0] <= 1


class Member(ABC):
    def __init__(self, client: Client, topic: Topic, number: int, ledger: Ledger) -> None:
        self.client = client
        self.topic, self.topic_id, self.partitions = topic
        self.group = f"readers-of-{topic.name}"
        self.number = number
        self.ledger = ledger
        self.member_id = ""
        self.owned: set[int] = set()
        self.is_running = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.is_running = True
        self._task = asyncio.get_running_loop().create_task(self._live())

    def leave(self) -> None:
        self.crash()
        self._task = asyncio.get_running_loop().create_task(self._say_goodbye())

    def crash(self) -> None:
        """It stops reading at once and says nothing."""
        self.is_running = False
        if self._task is not None:
            self._task.cancel()
        self.own(set())

    async def ended(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def own(self, partitions: set[int]) -> None:
        self.ledger.let_go(self, self.owned - partitions)
        self.ledger.take(self, partitions - self.owned)
        self.owned = partitions

    async def ask(self, message: Message) -> Any:
        return await self.client.request(None, message, channel=str(self.number), timeout_ms=90_000)

    @abstractmethod
    async def _live(self) -> None: ...

    @abstractmethod
    async def _say_goodbye(self) -> None: ...


class ConsumerMember(Member):
    async def _live(self) -> None:
        self.member_id, self.epoch = str(uuid4()), 0
        while True:
            answer = await self.ask(self._heartbeat())
            if answer.error_code:
                assert ErrorCode(answer.error_code) in (*TRY_AGAIN, ErrorCode.FENCED_MEMBER_EPOCH), answer
                self.epoch = 0
                self.own(set())
                continue
            self.epoch = answer.member_epoch
            before = set(self.owned)
            if answer.assignment is not None:
                given = answer.assignment.topic_partitions
                self.own({partition for one in given for partition in one.partitions})
            if not before - self.owned:
                await asyncio.sleep(answer.heartbeat_interval_ms / 1_000)

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        owned = [TopicPartitions(topic_id=self.topic_id, partitions=sorted(self.owned))] if self.owned else []
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, topic_partitions=owned
        )
        if not self.epoch:
            request.rebalance_timeout_ms, request.subscribed_topic_names = 60_000, [self.topic]
        return request

    async def _say_goodbye(self) -> None:
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=-1)
        await self.ask(request)


class ClassicMember(Member):
    """Eager: it lets go of everything before it joins again. Whoever leads gives out runs of partitions."""

    async def _live(self) -> None:
        self.member_id = ""
        while True:
            joined = await self._join()
            request = SyncGroupRequest(
                group_id=self.group,
                member_id=self.member_id,
                generation_id=joined.generation_id,
                protocol_type="consumer",
                protocol_name="runs",
            )
            if joined.leader == self.member_id:
                request.assignments = self._assign([member.member_id for member in joined.members])
            synced = await self.ask(request)
            if synced.error_code:
                continue
            self.own({int(partition) for partition in bytes(synced.assignment).split()})
            while not (await self.ask(self._heartbeat(joined.generation_id))).error_code:
                await asyncio.sleep(INTERVAL_S)
            self.own(set())

    async def _join(self) -> JoinGroupResponse:
        while True:
            metadata = b"\0\0" + ConsumerProtocolSubscription(topics=[self.topic]).encode(0)
            request = JoinGroupRequest(
                group_id=self.group,
                member_id=self.member_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="runs", metadata=metadata)],
            )
            answer: JoinGroupResponse = await self.ask(request)
            if not answer.error_code:
                self.member_id = answer.member_id
                return answer
            known = ErrorCode(answer.error_code)
            self.member_id = answer.member_id if known is ErrorCode.MEMBER_ID_REQUIRED else ""

    def _assign(self, members: list[str]) -> list[SyncGroupRequestAssignment]:
        each, extra = divmod(self.partitions, len(members))
        given, at = [], 0
        for rank, member_id in enumerate(sorted(members)):
            end = at + each + (rank < extra)
            assignment = b" ".join(b"%d" % partition for partition in range(at, end))
            given.append(SyncGroupRequestAssignment(member_id=member_id, assignment=assignment))
            at = end
        return given

    def _heartbeat(self, generation: int) -> HeartbeatRequest:
        return HeartbeatRequest(group_id=self.group, member_id=self.member_id, generation_id=generation)

    async def _say_goodbye(self) -> None:
        await self.ask(LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=self.member_id)]))


async def prepare(client: Client, name: str, partitions: int) -> Topic:
    """A new topic; the coordinator of its readers is there."""
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)], timeout_ms=60_000
    )
    (made,) = (await client.request(None, request, timeout_ms=90_000)).topics
    assert not made.error_code, made
    group = f"readers-of-{name}"
    while True:
        await client.request(None, FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))
        beat = await client.request(None, HeartbeatRequest(group_id=group))
        if ErrorCode(beat.error_code) is ErrorCode.UNKNOWN_MEMBER_ID:
            return Topic(name, made.topic_id, partitions)
        await asyncio.sleep(0.2)
