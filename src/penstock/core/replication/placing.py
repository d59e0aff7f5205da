"""Where a broker says that a copy of its own lies: in its directory, or nowhere, because its log has failed.

The directory is how Kafka tells the controller of a disk that broke (KIP-858): a replica in a directory that is not
online leaves the ISR and may not lead. One log that failed is such a replica: a copy that is lost, until the broker
starts again and finds it whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.base.ids import LOST_DIRECTORY
from penstock.core.metadata.image import Broker
from penstock.core.metadata.image import Partition as Described


def directory_to_tell(
    described: Described, node_id: int, own: bytes, brokers: Mapping[int, Broker], *, failed: bool
) -> bytes | None:
    """What the controller should hear; None where it knows. A copy that failed is told to be lost only where another
    in sync can lead instead: alone, it can still be read from."""
    if node_id not in described.replicas or len(described.directories) != len(described.replicas):
        return None
    known = described.directories[described.replicas.index(node_id)]
    if failed and node_id not in described.isr:
        return None
    wanted = LOST_DIRECTORY if failed and _has_heir(described, node_id, brokers) else own
    return None if wanted == known else wanted


def _has_heir(described: Described, node_id: int, brokers: Mapping[int, Broker]) -> bool:
    return any(one != node_id and one in brokers and brokers[one].active for one in described.isr)
