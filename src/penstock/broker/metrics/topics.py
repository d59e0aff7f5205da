"""What went in and out, by topic and in all: Kafka's BrokerTopicMetrics, and how often each API was asked.

The sum has no label, as Kafka's own bean without a topic; dashboards tell them apart by `topic!=""`.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.broker.metrics.sources import Sources
from penstock.broker.metrics.text import Exposition

_PREFIX = "kafka_server_brokertopicmetrics_"
_COUNTERS = (
    ("messages_in", "messagesin", "Records appended"),
    ("bytes_in", "bytesin", "Bytes of batches appended"),
    ("bytes_out", "bytesout", "Bytes of batches sent to consumers"),
    ("produces", "totalproducerequests", "Partitions written to by Produce requests"),
    ("fetches", "totalfetchrequests", "Partitions read by Fetch requests"),
    ("failed_produces", "failedproducerequests", "Partitions of Produce requests that failed"),
    ("failed_fetches", "failedfetchrequests", "Partitions of Fetch requests that failed"),
    ("share_fetches", "totalsharefetchrequests", "Partitions read by ShareFetch requests"),
    ("share_acknowledges", "totalshareacknowledgementrequests", "Partitions that members of share groups told of"),
    ("failed_share_fetches", "failedsharefetchrequests", "Partitions of ShareFetch requests that failed"),
    ("failed_share_acknowledges", "failedshareacknowledgementrequests", "Acknowledgements of a partition that failed"),
)
_AT_ONCE = 256
"""topics looked at before the loop gets its turn"""


def traffic(sources: Sources, out: Exposition) -> Iterator[None]:
    topics = list(sources.services.partitions.traffic.items())
    families = [
        (field, f"{_PREFIX}{name}_total", out.family(f"{_PREFIX}{name}_total", "counter", text))
        for field, name, text in _COUNTERS
    ]
    past = sources.services.partitions.past_traffic
    sums = [getattr(past, field) for field, _, _ in families]
    for count, (topic, counted) in enumerate(topics):
        for slot, (field, name, lines) in enumerate(families):
            value: int = getattr(counted, field)
            sums[slot] += value
            lines.append(f'{name}{{topic="{topic}"}} {value}\n')
        if count % _AT_ONCE == 0:
            yield
    for (_, name, lines), total in zip(families, sums, strict=True):
        lines.append(f"{name} {total}\n")


def requests(sources: Sources, out: Exposition) -> Iterator[None]:
    for row in sources.table.rows:
        out.counter("kafka_network_requestmetrics_requests_total", "Requests handled", row.requests, request=row.name)
    yield
