"""The rooms of share groups, put together: who keeps their state, the way to it, and who hands out records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.base.ids import SHARE_STATE_TOPIC
from penstock.base.ports import Clock, Random
from penstock.broker.config import BrokerConfig
from penstock.broker.coordinators import Coordinators
from penstock.broker.dead_letters import DeadLetters
from penstock.broker.end_offsets import EndOffsets
from penstock.broker.partitions import Partitions
from penstock.broker.peers import Peers
from penstock.broker.share_coordinators import ShareCoordinators
from penstock.broker.share_groups import ShareGroups
from penstock.broker.share_settings import GroupSettings
from penstock.broker.share_state import ShareStates
from penstock.broker.shares import Shares
from penstock.broker.state_topic import StateTopic
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.core.share.config import ShareConfig


class Sharing:
    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], Image],
        partitions: Partitions,
        groups: Coordinators,
        create_topic: Callable[[], Awaitable[None]],
        create_missing: Callable[[list[str]], Awaitable[None]],
        clock: Clock,
        random: Random,
    ) -> None:
        self._partitions = partitions
        self._peers = Peers(config.inter_broker_listener, image, clock, random)
        self.coordinators = ShareCoordinators(
            _settings(config),
            StateTopic(SHARE_STATE_TOPIC, partitions, image),
            clock,
            create_topic,
            image,
            self._cut,
            commit_timeout_ms=config.number("share.coordinator.write.timeout.ms"),
        )
        self.states = ShareStates(config.node_id, image, self.coordinators, self._peers, clock)
        self._dead_letters = DeadLetters(
            config.node_id, config.inter_broker_listener, image, create_missing, clock, random
        )
        self.shares = Shares(
            partitions,
            self.states,
            GroupSettings(image, Node(config.node_id, config.values)),
            clock,
            config.number("group.share.max.share.sessions"),
            self._dead_letters.bury,
        )
        ends = EndOffsets(config.node_id, image, partitions, self._peers)
        self.groups = ShareGroups(groups, self.states, image, ends)

    def _cut(self, partition: int, offset: int) -> None:
        self._partitions.delete_before(SHARE_STATE_TOPIC, partition, offset)

    async def close(self) -> None:
        self.shares.close()
        await self.groups.close()
        await self.coordinators.close()
        await self._dead_letters.close()
        await self._peers.close()


def _settings(config: BrokerConfig) -> ShareConfig:
    return ShareConfig(
        updates_per_snapshot=config.number("share.coordinator.snapshot.update.records.per.snapshot"),
        cold_snapshot_interval_ms=config.number("share.coordinator.cold.partition.snapshot.interval.ms"),
        prune_interval_ms=config.number("share.coordinator.state.topic.prune.interval.ms"),
    )
