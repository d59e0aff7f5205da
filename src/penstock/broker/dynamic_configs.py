"""Broker configurations that change while the broker runs. A topic's defaults are not here: logs read those themselves.

A value that was set through the API holds again after a restart: it is in the metadata log.
"""

from __future__ import annotations

from penstock.base.configs.define import ResourceType
from penstock.broker.housekeeping import Housekeeping
from penstock.broker.listener import Listener
from penstock.broker.quorum import Quorum
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node, broker_typed
from penstock.core.metadata.image import ALL_BROKERS, Image


class DynamicConfigs:
    def __init__(self, node: Node, listeners: list[Listener], housekeeping: Housekeeping) -> None:
        self._node = node
        self._own = (int(ResourceType.BROKER), str(node.id))
        self._listeners = listeners
        self._housekeeping = housekeeping

    def start(self, quorum: Quorum) -> None:
        """Once the listeners serve."""
        self.apply(quorum.image)
        quorum.subscribe(self.follow)

    def follow(self, delta: Delta, image: Image) -> None:
        if self._own in delta.changed_configs or ALL_BROKERS in delta.changed_configs:
            self.apply(image)

    def apply(self, image: Image) -> None:
        for listener in self._listeners:
            if listener.door is not None:
                listener.door.limit(
                    connections_max=self._number(image, "max.connections"),
                    connections_per_host_max=self._number(image, "max.connections.per.ip"),
                )
        self._housekeeping.cleaner_backoff_s = self._number(image, "log.cleaner.backoff.ms") / 1000

    def _number(self, image: Image, name: str) -> int:
        value = broker_typed(image, self._node, name)
        assert isinstance(value, int)
        return value
