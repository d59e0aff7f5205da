"""What changed between two images, where no records lead from one to the other: a snapshot took the place of a log."""

from __future__ import annotations

from penstock.core.metadata.delta import Delta
from penstock.core.metadata.image import Image


def difference(before: Image, after: Image) -> Delta:
    """A delta that tells what changed. It is not applied: `after` is there already."""
    delta = Delta(before)
    for topic_id, topic in after.topics_by_id.items():
        if before.topics_by_id.get(topic_id) != topic:
            delta.changed_topics[topic_id] = None
    for topic_id, topic in before.topics_by_id.items():
        if topic_id not in after.topics_by_id:
            delta.deleted_topics[topic_id] = topic
    for resource in [*before.configs, *after.configs]:
        if before.configs.get(resource) != after.configs.get(resource):
            delta.changed_configs[resource] = None
    for broker_id in [*before.brokers, *after.brokers]:
        if before.brokers.get(broker_id) != after.brokers.get(broker_id):
            delta.changed_brokers[broker_id] = None
    return delta
