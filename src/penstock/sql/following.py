"""Partitions read from given offsets on, without an end: what is there, then what arrives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.base.ids import TopicPartition
from penstock.columnar.decode import Decoder
from penstock.columnar.settings import Options
from penstock.sql.catalog import Brokers
from penstock.sql.planning import Scan
from penstock.wire.fetch import Fetcher, Reset, Settings
from penstock.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED
from penstock.wire.positions import Fetched
from penstock.wire.sessions import FetchLimits

POLL_MS = 500
FETCH_BYTES = 2_097_152
NO_END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Arrival:
    batches: list[pa.RecordBatch]
    caught_up: bool
    """whether all that the partitions held when they were last heard of is read"""


def follow(scan: Scan, brokers: Brokers) -> Iterator[Arrival]:
    """For ever; an arrival without batches is told every POLL_MS. Partitions that are added later are not followed."""
    topic = scan.table.topic
    committed = brokers.isolation == "read_committed"
    decoders = {
        one.partition: Decoder(topic, one.partition, scan.reading.sources, committed_only=committed)
        for one in scan.partitions
    }
    ends = {TopicPartition(topic, one.partition): one.end for one in scan.partitions}
    client = Options(brokers.config).client(brokers.bootstrap)
    try:
        fetcher = Fetcher(client.cluster, _settings(committed))
        fetcher.assign({TopicPartition(topic, one.partition): one.start for one in scan.partitions})
        while True:
            found = client.run(fetcher.poll(POLL_MS))
            batches = [
                scan.reading.apply(batch) for one in found for batch in _decoded(decoders[one.partition.partition], one)
            ]
            for one in found:
                ends[one.partition] = one.last_stable_offset if committed else one.high_watermark
            yield Arrival(batches, all(fetcher.positions[one].offset >= end for one, end in ends.items()))
    finally:
        client.close()


def _settings(committed: bool) -> Settings:
    limits = FetchLimits(
        max_wait_ms=POLL_MS,
        min_bytes=1,
        max_bytes=52_428_800,
        isolation=READ_COMMITTED if committed else READ_UNCOMMITTED,
        rack="",
    )
    return Settings(limits, FETCH_BYTES, Reset.NONE, check_crcs=False)


def _decoded(decoder: Decoder, found: Fetched) -> Iterator[pa.RecordBatch]:
    yield from decoder.decode_many(found.data, found.position, NO_END, found.aborted)
