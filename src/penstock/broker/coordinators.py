"""The group coordinators of this broker: a shard for every partition of `__consumer_offsets` that it leads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import cast

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Random
from penstock.broker.coordinator import Shards, StateLog
from penstock.broker.journal import Journal
from penstock.core.coordinator.result import Producer
from penstock.core.coordinator.runtime import RuntimeState
from penstock.core.groups import refusals
from penstock.core.groups.config import GroupConfig
from penstock.core.groups.consumer.heartbeat import HeartbeatContext
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.shard import GroupShard
from penstock.core.groups.state import RequestContext
from penstock.core.metadata.image import Image
from penstock.protocol.generated.consumer_group_describe_response import DescribedGroup as DescribedConsumerGroup
from penstock.protocol.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from penstock.protocol.generated.delete_groups_response import DeletableGroupResult
from penstock.protocol.generated.describe_groups_response import DescribedGroup
from penstock.protocol.generated.heartbeat_request import HeartbeatRequest
from penstock.protocol.generated.heartbeat_response import HeartbeatResponse
from penstock.protocol.generated.join_group_request import JoinGroupRequest
from penstock.protocol.generated.join_group_response import JoinGroupResponse
from penstock.protocol.generated.leave_group_request import LeaveGroupRequest
from penstock.protocol.generated.leave_group_response import LeaveGroupResponse
from penstock.protocol.generated.list_groups_request import ListGroupsRequest
from penstock.protocol.generated.list_groups_response import ListedGroup, ListGroupsResponse
from penstock.protocol.generated.offset_commit_request import OffsetCommitRequest
from penstock.protocol.generated.offset_commit_response import OffsetCommitResponse
from penstock.protocol.generated.offset_delete_request import OffsetDeleteRequest
from penstock.protocol.generated.offset_delete_response import OffsetDeleteResponse
from penstock.protocol.generated.offset_fetch_request import OffsetFetchRequestGroup
from penstock.protocol.generated.offset_fetch_response import OffsetFetchResponseGroup
from penstock.protocol.generated.sync_group_request import SyncGroupRequest
from penstock.protocol.generated.sync_group_response import SyncGroupResponse
from penstock.protocol.generated.txn_offset_commit_request import TxnOffsetCommitRequest
from penstock.protocol.generated.txn_offset_commit_response import TxnOffsetCommitResponse

log = Journal(__name__)


class Coordinators:
    """The groups of this broker, each by its shard."""

    def __init__(
        self,
        config: GroupConfig,
        offsets: StateLog,
        clock: Clock,
        random: Random,
        create_internal_topic: Callable[[], Awaitable[None]],
        *,
        commit_timeout_ms: int = 5_000,
    ) -> None:
        self._metadata = Metadata()
        self._shards: Shards[GroupShard] = Shards(
            offsets,
            clock,
            create_internal_topic,
            lambda partition, epoch: GroupShard(config, random, self._metadata),
            commit_timeout_ms=commit_timeout_ms,
        )
        self.locate = self._shards.locate
        self.lead = self._shards.lead
        self.close = self._shards.close
        self.shards = self._shards.active
        self.find = self._coordinator = self._shards.find
        self._offsets = offsets
        self._clock = clock

    def follow(self, image: Image, changed_topics: Iterable[bytes] = ()) -> None:
        """The metadata log moved on; these topics (ids) may have changed."""
        self._metadata.follow(image, changed_topics)

    async def join_group(self, request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.join, request, context)
            return refusals.fit_join(cast(JoinGroupResponse, answer), context.api_version)
        except KafkaError as error:
            return refusals.join(request, error.code)

    async def sync_group(self, request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.sync, request, context)
            return cast(SyncGroupResponse, answer)
        except KafkaError as error:
            return refusals.sync(error.code)

    def heartbeat(self, request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = coordinator.answer_at_once(coordinator.runtime.shard.heartbeat, request, context)
            return cast(HeartbeatResponse, answer)
        except KafkaError as error:
            return refusals.heartbeat(error.code)

    async def leave_group(self, request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.leave, request, context)
            return cast(LeaveGroupResponse, answer)
        except KafkaError as error:
            return refusals.leave(error.code)

    async def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, context: HeartbeatContext
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.consumer_heartbeat, request, context)
            return cast(ConsumerGroupHeartbeatResponse, answer)
        except KafkaError as error:
            return refusals.consumer_heartbeat(error)

    async def describe_consumer_group(self, group_id: str, context: RequestContext) -> DescribedConsumerGroup:
        try:
            coordinator = self._coordinator(group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.describe_consumers, [group_id], context)
            return cast(list[DescribedConsumerGroup], answer)[0]
        except KafkaError as error:
            return DescribedConsumerGroup(group_id=group_id, error_code=error.code)

    async def commit_offsets(self, request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
        """Topic names are filled in, also where the client sent ids."""
        try:
            coordinator = self._coordinator(request.group_id)
            operation = coordinator.runtime.shard.commit_offsets
            return cast(OffsetCommitResponse, await coordinator.answer(operation, request, context, gathers=True))
        except KafkaError as error:
            return refusals.commit_offsets(request, error.code)

    async def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, confirm: Callable[[int, Callable[[], None]], Awaitable[None]]
    ) -> TxnOffsetCommitResponse:
        """`confirm`: has the coordinator of the transaction say that this partition of the offsets is part of it; what
        it is given takes the guard, before it asks."""
        guard: object = None
        try:
            coordinator = self._coordinator(request.group_id)
            partition, producer_id, epoch = coordinator.partition, request.producer_id, request.producer_epoch

            def begin() -> None:
                nonlocal guard
                guard = self._offsets.verify(partition, producer_id, epoch, self._clock.wall_ms())

            begin()
            if guard is not None:
                await confirm(partition, begin)
            producer = Producer(producer_id, epoch, guard)
            answer = await coordinator.answer(coordinator.runtime.shard.commit_in_transaction, request, producer)
            return cast(TxnOffsetCommitResponse, answer)
        except KafkaError as error:
            return refusals.commit_in_transaction(request, error.code)

    def end_transaction(
        self, partition: int, batch: bytearray, producer_id: int, committed: bool, transaction_version: int
    ) -> int:
        """As `Coordinator.end_transaction`."""
        coordinator = self._shards.local.get(partition)
        if coordinator is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return coordinator.end_transaction(batch, producer_id, committed, transaction_version)

    async def fetch_offsets(self, request: OffsetFetchRequestGroup, require_stable: bool) -> OffsetFetchResponseGroup:
        """One group of an OffsetFetch. Topic names are filled in, also where the client sent ids."""
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.fetch_offsets, request, require_stable)
            return cast(OffsetFetchResponseGroup, answer)
        except KafkaError as error:
            return refusals.fetch_offsets(request.group_id, error.code)

    async def delete_offsets(self, request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
        try:
            coordinator = self._coordinator(request.group_id)
            answer = await coordinator.answer(coordinator.runtime.shard.delete_offsets, request, context)
            return cast(OffsetDeleteResponse, answer)
        except KafkaError as error:
            return refusals.delete_offsets(error.code)

    def describe_groups(self, group_ids: list[str], context: RequestContext) -> list[DescribedGroup]:
        described: list[DescribedGroup] = []
        for group_id in group_ids:
            try:
                coordinator = self._coordinator(group_id)
                answer = coordinator.answer_at_once(coordinator.runtime.shard.describe, [group_id], context)
                described += cast(list[DescribedGroup], answer)
            except KafkaError as error:
                described += refusals.describe([group_id], error.code)
        return described

    def list_groups(self, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
        """The groups of this broker; an error while one of its shards is loading, as the list would not be whole."""
        listed: list[ListedGroup] = []
        for coordinator in self._shards.local.values():
            if coordinator.runtime.state is RuntimeState.FAILED:
                continue
            try:
                answer = coordinator.answer_at_once(coordinator.runtime.shard.list_groups, request, context)
            except KafkaError as error:
                return refusals.list_groups(error.code)
            listed += cast(list[ListedGroup], answer)
        return ListGroupsResponse(groups=listed)

    async def delete_groups(self, group_ids: list[str], context: RequestContext) -> list[DeletableGroupResult]:
        results: list[DeletableGroupResult] = []
        for group_id in dict.fromkeys(group_ids):
            try:
                coordinator = self._coordinator(group_id)
                answer = await coordinator.answer(coordinator.runtime.shard.delete_groups, [group_id], context)
                results += cast(list[DeletableGroupResult], answer)
            except KafkaError as error:
                results += refusals.delete_groups([group_id], error.code)
        return results

    async def forget_topics(self, topics: list[tuple[str, bytes]]) -> None:
        """Topics (name, id) were deleted: so are their offsets, in every shard."""
        for coordinator in list(self._shards.local.values()):
            try:
                await coordinator.answer(coordinator.runtime.shard.forget_topics, topics, None)
            except KafkaError as error:
                log.warning("offsets of deleted topics kept", partition=coordinator.partition, error=error.code.name)
