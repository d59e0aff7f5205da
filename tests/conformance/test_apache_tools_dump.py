"""kafka-dump-log reads every file that a broker leaves behind: segments, indexes, snapshots, internal topics."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from apache_tools import ApacheTools
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.ports import free_port
from proofs.processes import BrokerProcess

RECORDS = 600
SEGMENT_BYTES = 1 << 20
"""The smallest that Kafka allows."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Left(NamedTuple):
    """What a stopped broker left on disk."""

    tools: ApacheTools
    data: Path

    def files(self, partition: str, suffix: str) -> list[Path]:
        return sorted(path for path in (self.data / partition).glob(f"*{suffix}") if path.stat().st_size)


@pytest.fixture(scope="module")
def left(
    tmp_path_factory: pytest.TempPathFactory, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[Left]:
    directory = tmp_path_factory.mktemp("dump")
    broker = BrokerProcess(directory / "broker", free_port(), offsets_topic_num_partitions="1")
    broker.start()
    try:
        _use(broker.address)
    finally:
        assert broker.stop() == 0
    tools = ApacheTools(broker.address, directory / "archive.jsa")
    yield Left(tools, directory / "broker" / "1" / "data")
    tools.report(record_testsuite_property)


def _use(bootstrap: str) -> None:
    """A topic of several segments in every codec, read by a group which commits."""
    configs = {"segment.bytes": str(SEGMENT_BYTES), "index.interval.bytes": "512"}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("dumped", 1, 1, config=configs)])["dumped"].result(10)
    chance = random.Random(1)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec})
        for n in range(RECORDS // len(CODECS)):
            producer.produce(
                "dumped", f"value-{n} {chance.randbytes(3500).hex()}", key=codec.encode(), headers=[("codec", codec)]
            )
            if n % 10 == 9:
                assert producer.flush(10) == 0
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    reader.subscribe(["dumped"])
    seen = 0
    while seen < RECORDS:
        seen += len(reader.consume(100, timeout=10))
    reader.commit(asynchronous=False)
    reader.close()


def test_segments_are_read_batch_by_batch_and_record_by_record(left: Left) -> None:
    segments = left.files("dumped-0", ".log")
    assert len(segments) > 2
    shown = left.tools.dump(*segments, options=("--deep-iteration", "--print-data-log")).out
    records = re.findall(r"^\| offset: (\d+) .*headerKeys: \[codec] key: (\w+) payload: value-(\d+)", shown, re.M)
    assert [int(offset) for offset, _, _ in records] == list(range(RECORDS))
    assert {key: sum(1 for record in records if record[1] == key) for key in CODECS} == dict.fromkeys(CODECS, 120)
    assert set(re.findall(r"compresscodec: (\w+)", shown)) == set(CODECS)
    assert "isvalid: false" not in shown


def test_indexes_agree_with_their_segments(left: Left) -> None:
    offsets = left.files("dumped-0", ".index")
    times = left.files("dumped-0", ".timeindex")
    assert len(offsets) > 2 and len(times) > 2
    shown = left.tools.dump(*offsets, *times).out
    assert len(re.findall(r"^offset: \d+ position: \d+", shown, re.M)) > len(offsets)
    assert len(re.findall(r"^timestamp: \d{13} offset: \d+", shown, re.M)) >= len(times)
    for complaint in ("Mismatches in", "out of order", "Found timestamp mismatch", "found", "Exception"):
        assert complaint not in shown
    sane = left.tools.dump(*offsets, options=("--index-sanity-check",)).out
    assert sane.count("passed sanity check.") == len(offsets)


def test_producer_snapshots_tell_each_producer(left: Left) -> None:
    newest = left.files("dumped-0", ".snapshot")[-1]
    assert int(newest.stem) == RECORDS
    shown = left.tools.dump(newest).lines[1:]
    assert len(shown) == len(CODECS)
    assert all("producerEpoch: 0" in line and "lastSequence: 119 " in line for line in shown)


def test_the_groups_topic_is_decoded(left: Left) -> None:
    shown = left.tools.dump(*left.files("__consumer_offsets-0", ".log"), options=("--offsets-decoder",)).out
    commits = re.findall(
        r'key: {"type":"1","data":{"group":"readers","topic":"dumped","partition":0}} payload: (.*)', shown
    )
    assert f'"offset":{RECORDS},' in commits[-1]
    assert re.search(r'key: {"type":"2","data":{"group":"readers"}} payload: .*"protocolType":"consumer"', shown)


def test_the_metadata_log_and_its_snapshots_are_decoded(left: Left) -> None:
    options = ("--cluster-metadata-decoder",)
    shown = left.tools.dump(*left.files("__cluster_metadata-0", ".log"), options=options).out
    assert re.search(r'"type":"TOPIC_RECORD","version":0,"data":{"name":"dumped"', shown)
    assert '"name":"segment.bytes","value":"1048576"' in shown
    assert '"type":"REGISTER_BROKER_RECORD"' in shown and '"type":"PARTITION_RECORD"' in shown
    snapshot = left.tools.dump(*left.files("__cluster_metadata-0", ".checkpoint"), options=options).out
    assert "SnapshotHeader" in snapshot and "KRaftVoters" in snapshot and "SnapshotFooter" in snapshot


def test_the_directory_is_one_that_kafka_storage_knows(left: Left) -> None:
    properties = left.data.parent / "server.properties"
    info = left.tools.java("kafka.tools.StorageTool", "info", "-c", str(properties))
    assert info.code == 0, info.err
    assert str(left.data) in info.out and "cluster.id=" in info.out
