"""The cluster as a decision sees it: the image, and what the decision itself is about to change in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.base.configs.define import ResourceType
from penstock.base.configs.topic import TOPIC_CONFIGS
from penstock.base.configs.values import Value, parse
from penstock.base.ids import UNASSIGNED_DIRECTORY
from penstock.core.metadata.effective import Node, broker_layers, inherited, readable
from penstock.core.metadata.image import Broker, Image, Topic

_BUMP_ON_SHRINK_BELOW = 12
"""Brokers before 3.6-IV0 took a smaller ISR for news only with a new leader epoch."""
_DIRECTORIES_FROM = 17


@dataclass(frozen=True, slots=True)
class Outlook:
    image: Image
    node: Node
    """whose properties file gives the defaults that no record sets"""
    leaving: int = -1
    """a broker that may not lead any more, whatever the image says"""
    joining: int = -1
    """a broker that may lead now, though the image still has it fenced"""
    _values: dict[tuple[str, str], Value] = field(default_factory=dict)
    """a decision may look at each partition of a topic"""

    def may_lead(self, broker: int, directory: bytes | None) -> bool:
        found = self.image.brokers.get(broker)
        if found is None or broker == self.leaving or found.in_controlled_shutdown:
            return False
        return (broker == self.joining or not found.fenced) and found.has_online(directory)

    def min_isr(self, topic: Topic) -> int:
        value = self._topic_value(topic.name, "min.insync.replicas")
        assert isinstance(value, int)
        return value

    def unclean_allowed(self, topic: str) -> bool:
        return self._topic_value(topic, "unclean.leader.election.enable") is True

    def new_directory(self, broker: int) -> bytes:
        """Where a broker puts a replica that it has not had."""
        found = self.image.brokers.get(broker)
        return UNASSIGNED_DIRECTORY if found is None else only_directory(found)

    @property
    def bumps_on_shrink(self) -> bool:
        return self.image.metadata_version < _BUMP_ON_SHRINK_BELOW

    @property
    def has_directories(self) -> bool:
        return self.image.metadata_version >= _DIRECTORIES_FROM

    def _topic_value(self, topic: str, name: str) -> Value:
        value = self._values.get((topic, name))
        if value is None:
            entry = TOPIC_CONFIGS[name]
            text = self.image.config(ResourceType.TOPIC, topic).get(name)
            if text is None:
                text, _ = inherited(broker_layers(self.image, self.node), entry)
            value = self._values[topic, name] = parse(entry, readable(entry, text))
        return value


def only_directory(broker: Broker) -> bytes:
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY
