"""One pass over all partitions: sizes, offsets, copies; and the totals of broker and cluster that come out of it.

A partition is told by its leader alone. Kafka counts `min.insync.replicas` as at most the number of copies there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.base.configs.define import ResourceType
from penstock.broker.metrics.cluster import Totals, tell_controller
from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition
from penstock.core.metadata.effective import broker_value
from penstock.core.metadata.image import Image
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.partition import Partition

_AT_ONCE = 128
"""partitions looked at before the loop gets its turn"""
_MIN_ISR = "min.insync.replicas"


def partitions(sources: Sources, out: Exposition) -> Iterator[None]:
    image = sources.services.image
    held = sources.services.partitions
    min_isr = _min_isr(sources, image)
    told = _Told(out)
    totals = Totals(sources.node_id)
    looked_at = 0
    for topic in list(image.topics.values()):
        asked_isr = min_isr(topic.name)
        for index, described in topic.partitions.items():
            partition = held.get(topic.name, index)
            needed = min(asked_isr, len(described.replicas))
            totals.add(described, partition, needed)
            if partition is not None:
                told.size(topic.name, index, partition)
                if described.leader == sources.node_id:
                    told.leader(topic.name, index, described, partition, needed)
            looked_at += 1
            if looked_at % _AT_ONCE == 0:
                yield
    totals.tell_broker(out)
    tell_controller(sources, image, totals, out)
    yield


def _min_isr(sources: Sources, image: Image) -> Callable[[str], int]:
    """What `min.insync.replicas` is for a topic: its own value, else the broker's."""
    inherited = broker_value(image, sources.services.node, _MIN_ISR)
    return lambda topic: int(image.config(ResourceType.TOPIC, topic).get(_MIN_ISR) or inherited or 1)


class _Told:
    """The families that have a sample for each partition."""

    def __init__(self, out: Exposition) -> None:
        def gauge(name: str, documentation: str) -> Callable[[str], None]:
            return out.family(name, "gauge", documentation).append

        exporter = "kafka_topic_partition_"
        self._size = gauge("kafka_log_log_size", "Bytes of a partition's log here")
        self._under = gauge("kafka_cluster_partition_underminisr", "1: fewer copies in sync than required")
        self._at = gauge("kafka_cluster_partition_atminisr", "1: just as many copies in sync as required")
        self._current = gauge(f"{exporter}current_offset", "The high watermark: the offset of the next record to read")
        self._oldest = gauge(f"{exporter}oldest_offset", "The first offset that is kept")
        self._leader = gauge(f"{exporter}leader", "The node that leads")
        self._replicas = gauge(f"{exporter}replicas", "Copies")
        self._in_sync = gauge(f"{exporter}in_sync_replica", "Copies in sync")
        self._preferred = gauge(f"{exporter}leader_is_preferred", "1: the first of its copies leads")
        self._degraded = gauge(f"{exporter}under_replicated_partition", "1: a copy is not in sync")

    def size(self, topic: str, index: int, partition: Partition) -> None:
        self._size(f'kafka_log_log_size{{topic="{topic}",partition="{index}"}} {partition.log.size_bytes}\n')

    def leader(self, topic: str, index: int, described: Described, partition: Partition, needed: int) -> None:
        labels = f'{{topic="{topic}",partition="{index}"}}'
        copies, in_sync, leads = len(described.replicas), len(described.isr), described.leader
        self._under(f"kafka_cluster_partition_underminisr{labels} {int(in_sync < needed)}\n")
        self._at(f"kafka_cluster_partition_atminisr{labels} {int(in_sync == needed)}\n")
        self._current(f"kafka_topic_partition_current_offset{labels} {partition.high_watermark}\n")
        self._oldest(f"kafka_topic_partition_oldest_offset{labels} {partition.log.start_offset}\n")
        self._leader(f"kafka_topic_partition_leader{labels} {leads}\n")
        self._replicas(f"kafka_topic_partition_replicas{labels} {copies}\n")
        self._in_sync(f"kafka_topic_partition_in_sync_replica{labels} {in_sync}\n")
        self._preferred(f"kafka_topic_partition_leader_is_preferred{labels} {int(leads == described.replicas[0])}\n")
        self._degraded(f"kafka_topic_partition_under_replicated_partition{labels} {int(in_sync < copies)}\n")
