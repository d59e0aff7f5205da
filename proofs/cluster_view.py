"""What a cluster says of itself: who leads, who controls, who is in sync."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka.admin import AdminClient, PartitionMetadata

from penstock.base.errors import KafkaError
from penstock.base.ids import METADATA_TOPIC
from penstock.protocol.generated.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from penstock.protocol.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.wire.blocking import Client

QUIET = {"log_level": 2}


class View:
    """Asks any node that answers, or each by itself."""

    def __init__(self, bootstrap: str, controllers: list[str]) -> None:
        """`controllers`: where their own listeners are."""
        self._controllers = controllers
        self._brokers = bootstrap.split(",")
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 2000, **QUIET})

    def leaders(self, topic: str) -> dict[int, int]:
        """Partition: its leader, -1 where there is none."""
        partitions = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return {number: one.leader for number, one in partitions.items()}

    def in_sync(self, topic: str, nodes: Iterable[int]) -> bool:
        """Whether all of the nodes are in sync for every partition."""
        partitions = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
        return all(set(nodes) <= set(one.isrs) and one.leader >= 0 for one in partitions.values())

    def partitions(self) -> dict[tuple[str, int], PartitionMetadata]:
        """Those of all topics: leader, replicas and ISR as clients are told."""
        topics = self.admin.list_topics(timeout=10).topics
        return {(topic.topic, number): one for topic in topics.values() for number, one in topic.partitions.items()}

    def give_leaders_back(self) -> None:
        """To the first of each partition's replicas, at once: by itself the controller does so every five minutes."""
        self.admin.elect_leaders(ElectionType.PREFERRED).result(30)

    def controller(self) -> int:
        """The active controller, as one that answers for the quorum tells."""
        found: list[int] = []

        def ask() -> bool:
            found[:] = [leader for leader in map(_leader, self._controllers) if leader >= 0]
            return bool(found)

        wait_until(ask, "no controller is active", 30)
        return found[0]

    def wait_in_sync(self, topic: str, nodes: Iterable[int], timeout_s: float = 60) -> None:
        """Until every node says so, and names the same leaders: one that was cut off a moment ago still tells of the
        time before, when all were in sync."""
        nodes = set(nodes)

        def agreed() -> bool:
            first, *others = [_standing(address, topic) for address in self._brokers]
            return all(one == first for one in others) and all(
                leader >= 0 and nodes <= in_sync for leader, in_sync in first.values()
            )

        wait_until(agreed, f"nodes {sorted(nodes)} are not all in sync", timeout_s)


def _standing(address: str, topic: str) -> dict[int, tuple[int, frozenset[int]]]:
    """Partition: its leader and who is in sync, as the node at this address tells."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    with Client(address) as client:
        (found,) = client.request(None, request, timeout_ms=2000).topics
    return {one.partition_index: (one.leader_id, frozenset(one.isr_nodes)) for one in found.partitions}


def _leader(address: str) -> int:
    """Who leads the quorum, asked of one controller; -1 where it does not answer for the quorum."""
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData(partition_index=0)])]
    )
    try:
        with Client(address) as client:
            (partition,) = client.request(None, request, timeout_ms=1000).topics[0].partitions
    except (KafkaError, OSError):
        return -1
    return int(partition.leader_id) if partition.error_code == 0 else -1


def wait_until(condition: Callable[[], bool], otherwise: str, timeout_s: float) -> float:
    """The seconds it took. What cannot be asked at the moment is not so yet."""
    began = time.monotonic()
    while True:
        try:
            if condition():
                return time.monotonic() - began
        except (KafkaException, KafkaError, OSError):
            pass
        if time.monotonic() - began > timeout_s:
            raise AssertionError(f"{otherwise} after {timeout_s:g} s")
        time.sleep(0.01)
