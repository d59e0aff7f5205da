"""What may be taken from the cluster now so that every loss is a bug: who holds what, as the newest metadata says.

A broker that comes back without saying that it stopped cleanly may lead nothing until it is in sync again (KIP-966):
whoever loses bytes, or is lost for good, must leave another behind that is in sync, and that one must stand until the
cluster is whole again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.core.metadata.image import Image, Partition
from penstock.sim.cluster import Node
from penstock.sim.probes import image_of, partitions_of, votes


def can_lose(nodes: Sequence[Node], gone: Sequence[Node]) -> bool:
    """Whether these may lose what they have: all others stand, and each partition has one of them in sync."""
    image = newest_image(nodes)
    left = [node for node in nodes if node not in gone and not node.lost]
    if image is None or not all(_stands(node) for node in left):
        return False
    ids = [node.id for node in left]
    return all(any(one in partition.isr for one in ids) for partition in _partitions(image))


def is_whole(nodes: Sequence[Node]) -> bool:
    """Whether all that are left serve and vote, what they hold is in sync, and nobody counts on one that is lost."""
    image = newest_image(nodes)
    left = [node.id for node in nodes if not node.lost]
    if image is None or not all(node.lost or (node.ready and votes(node)) for node in nodes):
        return False
    return all(
        partition.leader in left and sorted(partition.isr) == sorted(one for one in partition.replicas if one in left)
        for partition in _partitions(image)
    )


def newest_image(nodes: Sequence[Node]) -> Image | None:
    """Of those that serve, the one that has heard the most."""
    images = [image for node in nodes if node.ready and (image := image_of(node)) is not None]
    return max(images, key=lambda image: image.offset, default=None)


def _partitions(image: Image) -> Iterator[Partition]:
    for topic in image.topics.values():
        yield from topic.partitions.values()


def _stands(node: Node) -> bool:
    process = node.process
    serves = node.ready and not node.stopping and process is not None and not process.paused
    sound = not node.suspect and node.disk.is_sound
    return serves and sound and not any(probe.failure for probe in partitions_of(node))
