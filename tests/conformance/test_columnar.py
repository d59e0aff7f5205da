"""Tables written to and read from real brokers; transactions are whole or not there."""

from __future__ import annotations

import pyarrow as pa
import pytest
from conftest import RunningCluster

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.columnar.ranges import Isolation, read_range
from penstock.columnar.writing import TopicWriter
from penstock.wire import admin, blocking
from penstock.wire.offsets import LATEST, list_offsets


@pytest.fixture(params=["apache_kafka", "penstock_broker"], ids=["apache", "penstock"])
def transactional_cluster(request: pytest.FixtureRequest) -> RunningCluster:
    cluster: RunningCluster = request.getfixturevalue(request.param)
    return cluster


def create(bootstrap: str, name: str, partitions: int = 1) -> None:
    with blocking.Client(bootstrap) as client:
        client.run(admin.create_topics(client.cluster, [admin.NewTopic(name, partitions, 1)]))


def values(bootstrap: str, topic: str, isolation: Isolation = "read_committed", partition: int = 0) -> list[bytes]:
    """All that the log has now. A reader of committed records waits for the markers, which are written after a commit
    was answered."""
    place = TopicPartition(topic, partition)
    with blocking.Client(bootstrap) as client:
        end = client.run(list_offsets(client.cluster, {place: LATEST}))[place].offset
        found = read_range(bootstrap, topic, partition, 0, end, wanted={"value"}, isolation=isolation, client=client)
        return [value for batch in found for value in batch.column(0).to_pylist()]


def rows(*content: bytes) -> pa.Table:
    return pa.table({"value": list(content)})


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read(cluster: RunningCluster, topic_name: str, codec: str) -> None:
    create(cluster.bootstrap, topic_name, partitions=2)
    content = [b"value %d " % number * 10 for number in range(20_000)]
    config = {"kafka.compression.type": codec, "kafka.batch.size": "100000"}
    with TopicWriter(cluster.bootstrap, config, topic=topic_name) as writer:
        writer.write(pa.table({"key": [b"%d" % number for number in range(20_000)], "value": content}))
    found = [value for partition in range(2) for value in values(cluster.bootstrap, topic_name, partition=partition)]
    assert sorted(found) == sorted(content)


def test_committed_rows_are_read_and_aborted_ones_are_not(
    transactional_cluster: RunningCluster, topic_name: str
) -> None:
    bootstrap = transactional_cluster.bootstrap
    create(bootstrap, topic_name)
    with TopicWriter(bootstrap, topic=topic_name, transactional_id=f"id-{topic_name}") as writer:
        for content, end in ((b"one", writer.commit), (b"two", writer.abort), (b"three", writer.commit)):
            writer.begin()
            writer.write(rows(content))
            writer.flush()
            end()
        writer.begin()
        writer.write(rows(b"four"))
        writer.commit()
    assert values(bootstrap, topic_name, "read_uncommitted") == [b"one", b"two", b"three", b"four"]
    assert values(bootstrap, topic_name) == [b"one", b"three", b"four"]


def test_offsets_are_committed_with_the_rows_or_not_at_all(
    transactional_cluster: RunningCluster, topic_name: str
) -> None:
    bootstrap = transactional_cluster.bootstrap
    create(bootstrap, topic_name)
    marker = TopicPartition(topic_name, 0)
    with TopicWriter(bootstrap, topic=topic_name, transactional_id=f"id-{topic_name}") as writer:
        writer.begin()
        writer.write(rows(b"one"))
        writer.commit({topic_name: {marker: 7}})
        assert writer.committed(topic_name, [marker])[marker].offset == 7
        writer.begin()
        writer.write(rows(b"two"))
        writer.abort()
        assert writer.committed(topic_name, [marker])[marker].offset == 7


def test_a_writer_that_takes_the_id_fences_the_one_before(
    transactional_cluster: RunningCluster, topic_name: str
) -> None:
    bootstrap = transactional_cluster.bootstrap
    create(bootstrap, topic_name)
    with (
        TopicWriter(bootstrap, topic=topic_name, transactional_id=f"id-{topic_name}") as zombie,
        TopicWriter(bootstrap, topic=topic_name, transactional_id=f"id-{topic_name}") as heir,
    ):
        zombie.begin()
        zombie.write(rows(b"never seen"))
        zombie.flush()
        heir.begin()
        heir.write(rows(b"seen"))
        heir.commit()
        with pytest.raises(KafkaError) as caught:
            zombie.commit()
        assert caught.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert values(bootstrap, topic_name) == [b"seen"]
    assert values(bootstrap, topic_name, "read_uncommitted") == [b"never seen", b"seen"]


def test_a_range_that_ends_behind_an_open_transaction_says_so(
    transactional_cluster: RunningCluster, topic_name: str
) -> None:
    bootstrap = transactional_cluster.bootstrap
    create(bootstrap, topic_name)
    with TopicWriter(bootstrap, topic=topic_name, transactional_id=f"id-{topic_name}") as writer:
        writer.begin()
        writer.write(rows(b"open"))
        writer.flush()
        with pytest.raises(KafkaError, match="a transaction is open there"):
            list(read_range(bootstrap, topic_name, 0, 0, 1, timeout_ms=3_000))
        writer.abort()
