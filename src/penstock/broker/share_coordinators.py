"""The share coordinators of this broker: a shard for every partition of `__share_group_state` that it leads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock
from penstock.broker.coordinator import Coordinator, Shards, StateLog
from penstock.broker.journal import Journal
from penstock.core.coordinator.runtime import RuntimeState
from penstock.core.metadata.image import Image
from penstock.core.share.config import ShareConfig
from penstock.core.share.requests import Delete, Initialize, Read, ShareKey, Summarize, Write
from penstock.core.share.shard import ShareShard
from penstock.core.share.state import ShareState, ShareSummary

log = Journal(__name__)


class ShareCoordinators:
    """Refusals are KafkaErrors."""

    def __init__(
        self,
        config: ShareConfig,
        state_log: StateLog,
        clock: Clock,
        create_topic: Callable[[], Awaitable[None]],
        image: Callable[[], Image],
        cut: Callable[[int, int], None],
        *,
        commit_timeout_ms: int = 5_000,
    ) -> None:
        """`cut`: has the records of a partition below an offset deleted."""
        self._image = image
        self._cut = cut
        self._shards: Shards[ShareShard] = Shards(
            state_log,
            clock,
            create_topic,
            lambda partition, epoch: ShareShard(config),
            commit_timeout_ms=commit_timeout_ms,
            on_flushed=self._prune,
        )
        self.locate = self._shards.locate
        self.lead = self._shards.lead
        self.close = self._shards.close
        self.shards = self._shards.active

    async def initialize(self, request: Initialize) -> None:
        coordinator = self._find(request.key)
        await coordinator.answer(coordinator.runtime.shard.initialize, request, self._exists(request.key))

    async def read(self, request: Read) -> ShareState:
        coordinator = self._find(request.key)
        answer = await coordinator.answer(coordinator.runtime.shard.read, request, self._exists(request.key))
        return cast(ShareState, answer)

    async def write(self, request: Write) -> None:
        coordinator = self._find(request.key)
        await coordinator.answer(coordinator.runtime.shard.write, request, self._exists(request.key))

    async def delete(self, request: Delete) -> None:
        coordinator = self._find(request.key)
        await coordinator.answer(coordinator.runtime.shard.delete, request, self._exists(request.key))

    async def summary(self, request: Summarize) -> ShareSummary:
        coordinator = self._find(request.key)
        answer = await coordinator.answer(coordinator.runtime.shard.summary, request, self._exists(request.key))
        return cast(ShareSummary, answer)

    async def forget_topics(self, topic_ids: list[bytes]) -> None:
        """Topics were deleted: so is what share groups had of them, in every shard."""
        for coordinator in list(self._shards.local.values()):
            try:
                await coordinator.answer(coordinator.runtime.shard.forget_topics, topic_ids, None)
            except KafkaError as error:
                log.warning(
                    "share states of deleted topics kept", partition=coordinator.partition, error=error.code.name
                )

    def _find(self, key: ShareKey) -> Coordinator[ShareShard]:
        return self._shards.find(str(key))

    def _exists(self, key: ShareKey) -> bool:
        topic = self._image().topic_by_id(key.topic_id)
        return topic is not None and key.partition in topic.partitions

    def _prune(self, coordinator: Coordinator[ShareShard]) -> None:
        runtime = coordinator.runtime
        if not runtime.shard.prune_wanted or runtime.state is not RuntimeState.ACTIVE:
            return
        runtime.shard.prune_wanted = False
        offset = runtime.shard.redundant_before(runtime.watermark)
        if offset:
            try:
                self._cut(coordinator.partition, offset)
            except KafkaError as error:
                log.warning("old share states kept", partition=coordinator.partition, error=error.code.name)
