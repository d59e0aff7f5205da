"""Share groups as the brokers see them that hand out their records: Kafka's beans of KIP-1103, as far as they apply.

A share-partition is told while a member of its group has a session here. What Kafka measures of its locks and of its
operations that wait has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition, escaped
from penstock.broker.shared_partition import SharedPartition
from penstock.core.sharing.states import AcknowledgeType

_AT_ONCE = 256
"""share-partitions looked at before the loop gets its turn"""
_PARTITION = "kafka_server_sharepartitionmetrics_"
_SESSIONS = "kafka_server_sharesessioncache_"
_ACKNOWLEDGED = "kafka_server_sharegroupmetrics_recordacknowledgements_total"
_SAID = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)


def shares(sources: Sources, out: Exposition) -> Iterator[None]:
    held = sources.services.shares.held()
    for looked_at, shared in enumerate(held, 1):
        _tell(shared, out)
        if looked_at % _AT_ONCE == 0:
            yield
    counts = sources.services.shares.counts()
    for kind in _SAID:
        said = kind.name.capitalize()
        out.counter(_ACKNOWLEDGED, "Records acknowledged", counts.acknowledged[kind], ackType=said)
    out.gauge(f"{_SESSIONS}sharesessionscount", "Share sessions", len(sources.services.shares.sessions))
    out.gauge(f"{_SESSIONS}sharepartitionscount", "Share-partitions that they fetch from", len(held))
    yield


def _tell(shared: SharedPartition, out: Exposition) -> None:
    topic, index = shared.partition.name
    labels = f'{{group="{escaped(shared.key.group_id)}",topic="{topic}",partition="{index}"}}'
    records, batches = shared.in_flight
    rows = (
        ("inflightmessagecount", "gauge", "Records from the first that is not done to the last acquired", records),
        ("inflightbatchcount", "gauge", "Stretches of them that have the same fate so far", batches),
        ("acquisitionlocktimeout_total", "counter", "Records whose lock ran out", shared.counts.timed_out),
    )
    for name, kind, documentation, value in rows:
        out.family(_PARTITION + name, kind, documentation).append(f"{_PARTITION}{name}{labels} {value}\n")
