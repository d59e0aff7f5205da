"""Totals: of this broker's partitions, and, told by the active controller alone, of the whole cluster."""

from __future__ import annotations

from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition
from penstock.core.metadata.image import NO_LEADER, Image
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.partition import Partition


class Totals:
    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.held = self.led = self.degraded = self.under = self.at = self.failed = 0
        """of this broker"""
        self.all = self.leaderless = self.not_preferred = 0
        """of the cluster"""

    def add(self, described: Described, partition: Partition | None, needed: int) -> None:
        self.all += 1
        self.leaderless += described.leader == NO_LEADER
        self.not_preferred += described.leader != described.replicas[0]
        if partition is not None:
            self.held += 1
            self.failed += partition.log.failure is not None
        if described.leader == self._node_id:
            self.led += 1
            self.degraded += len(described.isr) < len(described.replicas)
            self.under += len(described.isr) < needed
            self.at += len(described.isr) == needed

    def tell_broker(self, out: Exposition) -> None:
        prefix = "kafka_server_replicamanager_"
        out.gauge(f"{prefix}partitioncount", "Partitions that have a copy here", self.held)
        out.gauge(f"{prefix}leadercount", "Partitions that are led from here", self.led)
        out.gauge(f"{prefix}underreplicatedpartitions", "Partitions led here that lack a copy in sync", self.degraded)
        out.gauge(f"{prefix}underminisrpartitioncount", "Partitions led here that refuse acks=all", self.under)
        out.gauge(f"{prefix}atminisrpartitioncount", "Partitions led here that may lose no more copies", self.at)
        out.gauge(f"{prefix}offlinereplicacount", "Copies here whose log failed", self.failed)


def tell_controller(sources: Sources, image: Image, totals: Totals, out: Exposition) -> None:
    """The active controller tells the cluster's totals, the others zeros: so a sum over all nodes is right."""
    active = sources.raft().leader_id == sources.node_id
    fenced = sum(broker.fenced for broker in image.brokers.values())
    prefix = "kafka_controller_kafkacontroller_"
    for name, documentation, value in (
        ("activecontrollercount", "1: this node is the active controller", 1),
        ("offlinepartitionscount", "Partitions without a leader", totals.leaderless),
        ("preferredreplicaimbalancecount", "Partitions not led by their first copy", totals.not_preferred),
        ("globaltopiccount", "Topics of the cluster", len(image.topics)),
        ("globalpartitioncount", "Partitions of the cluster", totals.all),
        ("activebrokercount", "Brokers that may lead", len(image.brokers) - fenced),
        ("fencedbrokercount", "Brokers that may not", fenced),
    ):
        out.gauge(prefix + name, documentation, value if active else 0)
    name, documentation = "kafka_controller_controllerstats_uncleanleaderelections_total", "Leaders that lacked records"
    out.counter(name, documentation, sources.services.controller.unclean_elections)
    if active:
        _tell_cluster(image, out)


def _tell_cluster(image: Image, out: Exposition) -> None:
    """kafka_exporter's names."""
    alive = [broker for broker in image.brokers.values() if not broker.fenced]
    out.gauge("kafka_brokers", "Brokers of the cluster", len(alive))
    for broker in alive:
        if broker.endpoints:
            address = f"{broker.endpoints[0].host}:{broker.endpoints[0].port}"
            out.gauge("kafka_broker_info", "A broker and where it listens", 1, id=broker.id, address=address)
    lines = out.family("kafka_topic_partitions", "gauge", "Partitions of a topic")
    for topic in image.topics.values():
        lines.append(f'kafka_topic_partitions{{topic="{topic.name}"}} {len(topic.partitions)}\n')
