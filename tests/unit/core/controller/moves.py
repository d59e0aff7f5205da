"""One partition among a few brokers, and how it looks after what a decision has led to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.core.controller.elections import Wish, decide_change
from penstock.core.controller.outlook import Outlook
from penstock.core.metadata.delta import Delta, changed_partition
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import EMPTY, Image, Partition, Topic
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.register_broker_record import RegisterBrokerRecord
from penstock.protocol.message import Message

ORDERS = b"o" * 16
ELR = "eligible.leader.replicas.version"
NODE = Node(1, {"min.insync.replicas": "2"})
UNCLEAN = Node(1, {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"})


def directory(broker: int) -> bytes:
    return bytes([100 + broker]) * 16


def replayed(image: Image, records: Iterable[Message]) -> Image:
    delta = Delta(image)
    for record in records:
        delta.replay(record)
    return delta.apply()


def partition(
    replicas: Sequence[int], isr: Sequence[int] | None = None, leader: int | None = None, **more
) -> Partition:
    """In sync everywhere and led by the first replica, where nothing else is said."""
    isr = replicas if isr is None else isr
    leader = (isr[0] if isr else -1) if leader is None else leader
    directories = tuple(directory(one) for one in replicas)
    more = {name: tuple(value) if isinstance(value, list) else value for name, value in more.items()}
    return Partition(tuple(replicas), tuple(isr), leader, 5, 9, directories, **more)


def cluster(*partitions: Partition, alive: Sequence[int] = (1, 2, 3, 4), elr: bool = True, level: int = 30) -> Image:
    """Four brokers, of which `alive` are unfenced, and one topic."""
    records: list[Message] = [FeatureLevelRecord(name="metadata.version", feature_level=level)]
    if elr:
        records.append(FeatureLevelRecord(name=ELR, feature_level=1))
    for one in (1, 2, 3, 4):
        record = RegisterBrokerRecord(broker_id=one, broker_epoch=10 + one, fenced=one not in alive)
        record.log_dirs, record.incarnation_id = [directory(one)], bytes([one]) * 16
        records.append(record)
    image = replayed(EMPTY, records)
    if not partitions:
        return image
    topic = Topic("orders", ORDERS, dict(enumerate(partitions)))
    delta = Delta(image)
    delta._put_topic(topic)
    return delta.apply()


def after(image: Image, wish: Wish, *, node: Node = NODE, index: int = 0, **outlook: int) -> Partition | None:
    """The partition as the change leaves it; None where there is no change."""
    topic = image.topics["orders"]
    record = decide_change(Outlook(image, node, **outlook), topic, index, wish)
    return None if record is None else changed_partition(topic.partitions[index], record)


def orders(image: Image, index: int = 0) -> Partition:
    found = image.partition("orders", index)
    assert found is not None
    return found
