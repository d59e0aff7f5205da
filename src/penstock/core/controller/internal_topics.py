"""The topics in which the cluster keeps its own state, as they are created on first use."""

from __future__ import annotations

from penstock.base.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from penstock.core.metadata.effective import Node, broker_typed
from penstock.core.metadata.image import Image
from penstock.protocol.generated.create_topics_request import CreatableTopic, CreatableTopicConfig

_PREFIXES = {
    OFFSETS_TOPIC: ("offsets.topic.num.partitions", "offsets.topic.replication.factor"),
    TRANSACTIONS_TOPIC: ("transaction.state.log.num.partitions", "transaction.state.log.replication.factor"),
    SHARE_STATE_TOPIC: (
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
    ),
}


def internal_topic(image: Image, node: Node, name: str) -> CreatableTopic:
    """What to ask of CreateTopics for an internal topic.

    A cluster smaller than the configured replication factor gets as many replicas as it has brokers, so that a single
    broker works with Kafka's defaults, which are made for three.
    """
    partitions, factor_name = _PREFIXES[name]
    brokers = sum(broker.active and not broker.cordoned for broker in image.brokers.values())
    factor = max(1, min(_number(image, node, factor_name), brokers))
    configs = _configs(image, node, name, factor)
    return CreatableTopic(
        name=name,
        num_partitions=_number(image, node, partitions),
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


def _configs(image: Image, node: Node, name: str, factor: int) -> dict[str, str]:
    if name == OFFSETS_TOPIC:
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(_number(image, node, "offsets.topic.segment.bytes")),
        }
    if name == TRANSACTIONS_TOPIC:
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(min(factor, _number(image, node, "transaction.state.log.min.isr"))),
            "segment.bytes": str(_number(image, node, "transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": str(min(factor, _number(image, node, "share.coordinator.state.topic.min.isr"))),
        "retention.ms": "-1",
        "segment.bytes": str(_number(image, node, "share.coordinator.state.topic.segment.bytes")),
    }


def _number(image: Image, node: Node, name: str) -> int:
    value = broker_typed(image, node, name)
    assert isinstance(value, int)
    return value
