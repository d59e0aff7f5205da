"""Fetch from the closest replica (KIP-392): the leader tells a consumer where to read instead."""

from __future__ import annotations

from penstock.core.replication.leading import Cluster, Leading
from penstock.core.replication.replica import Replica

NO_PREFERENCE = -1


def preferred(cluster: Cluster, leading: Leading, rack: str, offset: int) -> int:
    """The broker in the reader's rack that has what it wants, -1 where that is the leader itself or nobody. Of several
    the one that is furthest; the lowest id of those that are level."""
    me = cluster.brokers.get(cluster.node_id)
    if not rack or (me is not None and me.rack == rack):
        return NO_PREFERENCE
    near = [replica for replica in leading.replicas.values() if _serves(cluster, leading, replica, rack, offset)]
    best = max(near, key=lambda replica: (replica.end_offset, -replica.broker_id), default=None)
    return NO_PREFERENCE if best is None else best.broker_id


def _serves(cluster: Cluster, leading: Leading, replica: Replica, rack: str, offset: int) -> bool:
    broker = cluster.brokers.get(replica.broker_id)
    if broker is None or not broker.active or broker.rack != rack or replica.broker_id not in leading.isr:
        return False
    return 0 <= replica.start_offset <= offset <= replica.end_offset
