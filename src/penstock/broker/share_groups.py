"""Share groups on the loop: their coordinator decides who has what, share coordinators keep where they stand, and this
asks the one what the other wants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, cast

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.coordinators import Coordinators
from penstock.broker.end_offsets import EndOffsets
from penstock.broker.journal import Journal
from penstock.broker.share_state import ShareStates
from penstock.core.groups.state import RequestContext
from penstock.core.metadata.image import Image
from penstock.core.share.state import NOT_COUNTED, ShareSummary

if TYPE_CHECKING:
    from penstock.core.groups.share.group import Topics
    from penstock.core.groups.share.heartbeat import Heartbeat
    from penstock.core.groups.share.offsets import Alteration, Deletion
    from penstock.core.groups.share.partitions import Initialization
    from penstock.protocol.generated.alter_share_group_offsets_request import AlterShareGroupOffsetsRequest
    from penstock.protocol.generated.alter_share_group_offsets_response import AlterShareGroupOffsetsResponseTopic
    from penstock.protocol.generated.delete_share_group_offsets_request import DeleteShareGroupOffsetsRequest
    from penstock.protocol.generated.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponseTopic
    from penstock.protocol.generated.share_group_describe_response import DescribedGroup
    from penstock.protocol.generated.share_group_heartbeat_request import ShareGroupHeartbeatRequest
    from penstock.protocol.generated.share_group_heartbeat_response import ShareGroupHeartbeatResponse

log = Journal(__name__)

T = TypeVar("T")

_AT_ONCE = 64
"""partitions of one group that share coordinators are asked about together"""
UNKNOWN_LAG = -1

Place = tuple[bytes, int]
"""a partition, by its topic's id"""


class ShareGroups:
    """Refusals are KafkaErrors."""

    def __init__(self, groups: Coordinators, states: ShareStates, image: Callable[[], Image], ends: EndOffsets) -> None:
        self._groups = groups
        self._states = states
        self._image = image
        self._ends = ends
        self._beginning: set[asyncio.Task[object]] = set()

    async def heartbeat(
        self, request: ShareGroupHeartbeatRequest, context: RequestContext
    ) -> ShareGroupHeartbeatResponse:
        """What members are to consume may have to be begun first: they learn of it later."""
        from penstock.core.groups.share.heartbeat import check_request  # noqa: PLC0415 loaded by the first share group

        check_request(request)
        coordinator = self._groups.find(request.group_id)
        answer = await coordinator.answer(coordinator.runtime.shard.share_heartbeat, request, context)
        response, initialize = cast("Heartbeat", answer)
        if initialize is not None:
            task: asyncio.Task[object] = asyncio.get_running_loop().create_task(self._begin(initialize))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)
        return response

    async def describe(self, group_id: str, context: RequestContext) -> DescribedGroup:
        coordinator = self._groups.find(group_id)
        answer = await coordinator.answer(coordinator.runtime.shard.describe_shares, [group_id], context)
        return cast("list[DescribedGroup]", answer)[0]

    async def begun(self, group_id: str) -> Topics:
        """The partitions in which the group stands somewhere."""
        coordinator = self._groups.find(group_id)
        answer = await coordinator.answer(coordinator.runtime.shard.share_partitions, group_id, None)
        return cast("Topics", answer)

    async def standing(self, group_id: str, topics: Topics) -> dict[Place, tuple[ShareSummary, int] | KafkaError]:
        """By partition: what the share coordinator knows, and how many records are left to be consumed."""
        places = _places(topics)
        ends = self._ends.find([TopicPartition(topics[topic_id].name, index) for topic_id, index in places])

        async def one(place: Place) -> ShareSummary:
            return await self._states.summary(group_id, *place)

        summaries, ended = await asyncio.gather(_each(places, one), ends)
        found: dict[Place, tuple[ShareSummary, int] | KafkaError] = {}
        for place, summary in summaries.items():
            end = ended.get(TopicPartition(topics[place[0]].name, place[1]))
            found[place] = summary if isinstance(summary, KafkaError) else (summary, _lag(summary, end))
        return found

    async def alter_offsets(self, request: AlterShareGroupOffsetsRequest) -> list[AlterShareGroupOffsetsResponseTopic]:
        coordinator = self._groups.find(request.group_id)
        answer = await coordinator.answer(coordinator.runtime.shard.alter_share_offsets, request, None)
        told, initialize = cast("Alteration", answer)
        failed = await self._begin(initialize)
        for topic in told:
            for one in topic.partitions:
                error = failed.get((topic.topic_id, one.partition_index))
                if error is not None:
                    one.error_code, one.error_message = error.code, error.message
        return told

    async def delete_offsets(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> list[DeleteShareGroupOffsetsResponseTopic]:
        coordinator = self._groups.find(request.group_id)
        answer = await coordinator.answer(coordinator.runtime.shard.delete_share_offsets, request, None)
        from penstock.protocol.generated.delete_share_group_offsets_response import (  # noqa: PLC0415 likewise
            DeleteShareGroupOffsetsResponseTopic,
        )

        told, states = cast("Deletion", answer)
        failed = await self._forget(request.group_id, states)
        for topic_id, topic in states.items():
            result = DeleteShareGroupOffsetsResponseTopic(topic_name=topic.name, topic_id=topic_id)
            if topic_id in failed:
                result.error_code, result.error_message = failed[topic_id].code, failed[topic_id].message
            told.append(result)
        return told

    async def delete_states(self, group_ids: list[str]) -> dict[str, ErrorCode]:
        """Have share coordinators forget these groups, as far as they are share groups, before they are deleted; those
        that must be kept, with the reason."""
        kept: dict[str, ErrorCode] = {}
        for group_id in dict.fromkeys(group_ids):
            try:
                coordinator = self._groups.find(group_id)
                if group_id not in coordinator.runtime.shard.state.store.shares:
                    continue
                answer = await coordinator.answer(coordinator.runtime.shard.delete_share_group, group_id, None)
                failed = await self._forget(group_id, cast("Deletion", answer).states)
                if failed:
                    kept[group_id] = next(iter(failed.values())).code
            except KafkaError as error:
                kept[group_id] = error.code
        return kept

    async def close(self) -> None:
        for task in list(self._beginning):
            task.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)

    async def _begin(self, asked: Initialization) -> dict[Place, KafkaError]:
        """Have partitions begun and tell the group's coordinator; those that could not be."""
        offsets = {
            (topic_id, index): offset
            for topic_id, partitions in asked.start_offsets.items()
            for index, offset in partitions.items()
        }

        async def one(place: Place) -> None:
            await self._states.initialize(asked.group_id, *place, asked.state_epoch, offsets[place])

        outcomes = await _each(list(offsets), one)
        failed = {place: error for place, error in outcomes.items() if isinstance(error, KafkaError)}
        done = {place: offset for place, offset in offsets.items() if place not in failed}
        try:
            await self._tell(asked, done, "share_initialized")
            await self._tell(asked, {place: offsets[place] for place in failed}, "share_not_initialized")
        except KafkaError as error:
            log.warning("partitions of a share group not begun", group=asked.group_id, error=error.code.name)
            return dict.fromkeys(offsets, error)
        return failed

    async def _tell(self, asked: Initialization, offsets: dict[Place, int], door: str) -> None:
        if not offsets:
            return
        by_topic: dict[bytes, dict[int, int]] = {}
        for (topic_id, index), offset in offsets.items():
            by_topic.setdefault(topic_id, {})[index] = offset
        coordinator = self._groups.find(asked.group_id)
        operation = getattr(coordinator.runtime.shard, door)
        await coordinator.answer(operation, asked._replace(start_offsets=by_topic), None)

    async def _forget(self, group_id: str, states: Topics) -> dict[bytes, KafkaError]:
        """Have the states of these topics deleted and tell the group's coordinator; those that could not be."""

        async def one(place: Place) -> None:
            await self._states.delete(group_id, *place)

        outcomes = await _each(_places(states), one)
        failed = {topic_id: error for (topic_id, _), error in outcomes.items() if isinstance(error, KafkaError)}
        done = tuple(topic_id for topic_id in states if topic_id not in failed)
        from penstock.core.groups.share.offsets import Deleted  # noqa: PLC0415 likewise

        coordinator = self._groups.find(group_id)
        await coordinator.answer(coordinator.runtime.shard.share_deleted, Deleted(group_id, done), None)
        return failed


async def _each(places: list[Place], ask: Callable[[Place], Awaitable[T]]) -> dict[Place, T | KafkaError]:
    """Some at a time."""
    found: dict[Place, T | KafkaError] = {}
    for at in range(0, len(places), _AT_ONCE):
        some = places[at : at + _AT_ONCE]
        found.update(zip(some, await asyncio.gather(*(_outcome(ask(place)) for place in some)), strict=True))
    return found


async def _outcome(asked: Awaitable[T]) -> T | KafkaError:
    try:
        return await asked
    except KafkaError as error:
        return error


def _places(topics: Topics) -> list[Place]:
    return [(topic_id, index) for topic_id, topic in topics.items() for index in topic.partitions]


def _lag(summary: ShareSummary, end: int | None) -> int:
    """Records from the start offset on that are not done with."""
    if summary.start_offset < 0 or summary.delivery_complete_count == NOT_COUNTED or end is None:
        return UNKNOWN_LAG
    return max(0, end - summary.start_offset - summary.delivery_complete_count)
