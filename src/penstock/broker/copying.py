"""Everything that keeps this broker's copies in step with the others: fetchers, ISR, quotas, failed logs, repairs."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.ports import Clock, Jobs, Random
from penstock.broker.config import BrokerConfig
from penstock.broker.controller_link import ControllerLink
from penstock.broker.fetchers import Fetchers
from penstock.broker.isr import Isr
from penstock.broker.partitions import Changes, Partitions
from penstock.broker.peers import Peers
from penstock.broker.placing import Placing
from penstock.broker.quorum import Quorum
from penstock.broker.repairing import Repairing
from penstock.broker.replication_quotas import ReplicationQuotas
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.core.replication.partition import Partition


class Copying:
    def __init__(
        self,
        config: BrokerConfig,
        node: Node,
        quorum: Quorum,
        partitions: Partitions,
        clock: Clock,
        random: Random,
        jobs: Jobs,
        broker_epoch: Callable[[], int],
    ) -> None:
        node_id = config.node_id
        self.isr = Isr(partitions, clock, node_id)
        self._quorum = quorum
        self._broker_epoch = broker_epoch
        self._placing = Placing(partitions, node_id, quorum.identity.directory_id)
        self.quotas = ReplicationQuotas(
            node,
            clock,
            config.number("replication.quota.window.num"),
            config.number("replication.quota.window.size.seconds") * 1000,
        )
        self._fetchers = Fetchers(config, partitions, clock, random, broker_epoch, self.quotas.follower)
        self._peers = Peers(config.inter_broker_listener, lambda: quorum.image, clock, random)
        self.repairing = Repairing(partitions, clock, jobs, node_id, self._peers.ask, self._rejoin)

    def start(self, link: ControllerLink) -> None:
        """This broker is registered."""
        self.quotas.start(self._quorum)
        self.isr.start(link.ask, self._broker_epoch)
        self._placing.start(link.ask, self._broker_epoch)
        self._fetchers.start(self._quorum.image)

    def follow(self, changes: Changes, delta: Delta, image: Image) -> None:
        """The copies have other roles now, as the metadata say."""
        self._fetchers.follow(changes, image)
        self.isr.ask(changes.joining)
        self._placing.follow(delta, image)

    def gone_leaders(self) -> frozenset[int]:
        return self._fetchers.gone()

    async def close(self) -> None:
        await self.isr.stop()
        await self._placing.stop()
        await self._fetchers.close()
        await self._peers.close()

    def _rejoin(self, partition: Partition) -> None:
        self._fetchers.rejoin(partition, self._quorum.image)
