"""The rooms of transactions, put together: who coordinates, who writes markers, who sends them, who asks before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from penstock.base.ids import TRANSACTIONS_TOPIC
from penstock.base.ports import Clock, Random
from penstock.broker.config import BrokerConfig
from penstock.broker.coordinators import Coordinators
from penstock.broker.marker_sending import MarkerSending
from penstock.broker.marker_writing import MarkerWriting
from penstock.broker.partitions import Partitions
from penstock.broker.peers import Peers
from penstock.broker.producer_ids import ProducerIds
from penstock.broker.state_topic import StateTopic
from penstock.broker.transactions import Transactions
from penstock.broker.verification import Verification
from penstock.core.metadata.image import Image
from penstock.core.transactions.config import TransactionConfig


class Transacting:
    def __init__(
        self,
        config: BrokerConfig,
        image: Callable[[], Image],
        partitions: Partitions,
        coordinators: Coordinators,
        producer_ids: ProducerIds,
        create_topic: Callable[[], Awaitable[None]],
        clock: Clock,
        random: Random,
    ) -> None:
        node_id = config.node_id
        self.peers = Peers(config.inter_broker_listener, image, clock, random)
        self.writing = MarkerWriting(partitions, coordinators, clock)
        self._sending = MarkerSending(node_id, image, self.writing, self.peers)
        self.transactions = Transactions(
            _settings(config),
            StateTopic(TRANSACTIONS_TOPIC, partitions, image),
            clock,
            producer_ids,
            create_topic,
            self._sending.take,
            lambda: image().transaction_version,
            config.number("add.partitions.to.txn.retry.backoff.max.ms"),
        )
        self.verification = Verification(
            node_id,
            image,
            self.transactions,
            self.peers,
            clock,
            config.number("add.partitions.to.txn.retry.backoff.ms"),
            config.number("add.partitions.to.txn.retry.backoff.max.ms"),
        )

    async def close(self) -> None:
        await self._sending.close()
        await self.transactions.close()
        await self.peers.close()


def _settings(config: BrokerConfig) -> TransactionConfig:
    return TransactionConfig(
        max_timeout_ms=config.number("transaction.max.timeout.ms"),
        expiration_ms=config.number("transactional.id.expiration.ms"),
        expiration_check_interval_ms=config.number("transaction.remove.expired.transaction.cleanup.interval.ms"),
    )
