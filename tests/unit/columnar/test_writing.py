"""`TopicWriter` against a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.columnar.ranges import read_range
from penstock.columnar.schema import ALL_COLUMNS, HEADERS_TYPE
from penstock.columnar.writing import TopicWriter
from penstock.wire.partitioners import partition_of_key

Topics = Callable[..., str]


def read_back(bootstrap: str, writer: TopicWriter, topic: str, partition: int) -> list[dict[str, object]]:
    end = writer.ends.get(TopicPartition(topic, partition), 0)
    return [
        row
        for batch in read_range(bootstrap, topic, partition, 0, end, wanted=ALL_COLUMNS)
        for row in batch.to_pylist()
    ]


def test_rows_are_read_back_where_their_keys_belong(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    topic = kafka_topics(partitions=3)
    rows = pa.table({"key": [b"k%d" % n for n in range(100)], "value": [b"v%d" % n for n in range(100)]})
    with TopicWriter(kafka_bootstrap_servers, topic=topic) as writer:
        writer.write(rows)
        writer.flush()
        for partition in range(3):
            found = [(row["key"], row["value"]) for row in read_back(kafka_bootstrap_servers, writer, topic, partition)]
            assert found == [
                (b"k%d" % n, b"v%d" % n) for n in range(100) if partition_of_key(b"k%d" % n, 3) == partition
            ]
    assert writer.rows == 100


def test_headers_partition_and_timestamp_are_kept(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    topic = kafka_topics(partitions=2)
    rows = pa.table(
        {
            "value": ["text", None],
            "partition": pa.array([1, 1], pa.int32()),
            "timestamp": pa.array([1_700_000_000_000, 1_700_000_000_001], pa.timestamp("ms")),
            "headers": pa.array([[("h", b"x"), ("h", None)], None], HEADERS_TYPE),
        }
    )
    with TopicWriter(kafka_bootstrap_servers, topic=topic) as writer:
        writer.write(rows)
        writer.flush()
        found = read_back(kafka_bootstrap_servers, writer, topic, 1)
    assert [row["value"] for row in found] == [b"text", None]
    assert [row["timestamp"].timestamp() for row in found] == [1_700_000_000.0, 1_700_000_000.001]  # type: ignore[attr-defined]  # a datetime
    assert [row["headers"] for row in found] == [[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], None]


def test_rows_go_to_the_topics_that_they_name(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    one, other = kafka_topics(), kafka_topics()
    with TopicWriter(kafka_bootstrap_servers) as writer:
        writer.write(pa.table({"topic": [one, other, one], "value": [b"1", b"2", b"3"]}))
        writer.flush()
        assert [row["value"] for row in read_back(kafka_bootstrap_servers, writer, one, 0)] == [b"1", b"3"]
        assert [row["value"] for row in read_back(kafka_bootstrap_servers, writer, other, 0)] == [b"2"]


def test_rows_without_keys_come_to_every_partition(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    topic = kafka_topics(partitions=3)
    with TopicWriter(kafka_bootstrap_servers, {"kafka.batch.size": "1000"}, topic=topic) as writer:
        writer.write(pa.table({"value": [bytes(100)] * 300}))
        writer.flush()
        assert sum(writer.ends.values()) == 300
        assert all(end > 50 for end in writer.ends.values())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_written_and_read(kafka_bootstrap_servers: str, kafka_topic: str, codec: str) -> None:
    values = [b"value %d " % n * 20 for n in range(5000)]
    with TopicWriter(kafka_bootstrap_servers, {"kafka.compression.type": codec}, topic=kafka_topic) as writer:
        writer.write(pa.table({"value": values}))
        writer.flush()
        assert [row["value"] for row in read_back(kafka_bootstrap_servers, writer, kafka_topic, 0)] == values


@pytest.mark.parametrize("acks", ["1", "all"])
def test_many_batches_stay_in_order(kafka_bootstrap_servers: str, kafka_topic: str, acks: str) -> None:
    config = {"batch.size": "2000", "buffer.memory": "20000"}
    with TopicWriter(kafka_bootstrap_servers, config, topic=kafka_topic, acks=acks) as writer:
        for first in range(0, 5000, 100):
            writer.write(pa.table({"value": [b"%d" % n for n in range(first, first + 100)]}))
        writer.flush()
        found = [row["value"] for row in read_back(kafka_bootstrap_servers, writer, kafka_topic, 0)]
    assert found == [b"%d" % n for n in range(5000)]


def test_closing_sends_what_is_left_and_an_error_does_not(kafka_bootstrap_servers: str, kafka_topic: str) -> None:
    with TopicWriter(kafka_bootstrap_servers, topic=kafka_topic) as writer:
        writer.write(pa.table({"value": [b"kept"]}))
    with pytest.raises(RuntimeError), TopicWriter(kafka_bootstrap_servers, topic=kafka_topic) as other:
        other.write(pa.table({"value": [b"dropped"]}))
        raise RuntimeError
    assert [row["value"] for row in read_back(kafka_bootstrap_servers, writer, kafka_topic, 0)] == [b"kept"]
    assert other.ends == {}


def test_a_row_too_large_for_the_topic_fails_with_its_partition(
    kafka_bootstrap_servers: str, kafka_topics: Topics
) -> None:
    topic = kafka_topics(config={"max.message.bytes": "1000"})
    with TopicWriter(kafka_bootstrap_servers, topic=topic) as writer:
        writer.write(pa.table({"value": [bytes(2000)]}))
        with pytest.raises(KafkaError, match=f"{topic}-0") as caught:
            writer.flush()
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_batches_are_no_larger_than_the_topic_takes(kafka_bootstrap_servers: str, kafka_topics: Topics) -> None:
    topic = kafka_topics(config={"max.message.bytes": "1000"})
    with TopicWriter(kafka_bootstrap_servers, topic=topic) as writer:
        writer.write(pa.table({"value": [bytes(100)] * 500}))
        writer.flush()
    assert writer.ends == {TopicPartition(topic, 0): 500}


def test_a_partition_that_is_not_there_is_refused(kafka_bootstrap_servers: str, kafka_topic: str) -> None:
    rows = pa.table({"value": [b"a", b"b"], "partition": pa.array([0, 4], pa.int32())})
    with (
        pytest.raises(KafkaError, match=f"row 1 asks for partition 4 of topic {kafka_topic}, which has 0 to 0"),
        TopicWriter(kafka_bootstrap_servers, topic=kafka_topic) as writer,
    ):
        writer.write(rows)


def test_rows_without_a_topic_are_refused(kafka_bootstrap_servers: str) -> None:
    with pytest.raises(ValueError, match="no topic to write to"), TopicWriter(kafka_bootstrap_servers) as writer:
        writer.write(pa.table({"value": [b"a"]}))
    with pytest.raises(ValueError, match="the topic of row 1 is null"), TopicWriter(kafka_bootstrap_servers) as writer:
        writer.write(pa.table({"topic": ["t", None], "value": [b"a", b"b"]}))


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_security_that_cannot_be_followed_is_refused_before_anything_is_sent(protocol: str) -> None:
    with pytest.raises(KafkaError, match=r"kafka\.sasl\.mechanism is needed"):
        TopicWriter("nowhere.invalid:1", {"kafka.security.protocol": protocol})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kafka.acks": "2"}, "acks is all, 1 or 0, not '2'"),
        (
            {"kafka.compression.type": "brotli"},
            "compression.type is one of none, gzip, snappy, lz4, zstd, not 'brotli'",
        ),
        ({"kafka.batch.size": "big"}, "kafka.batch.size is a whole number, not 'big'"),
    ],
)
def test_options_that_cannot_be_read_are_named(config: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TopicWriter("nowhere.invalid:1", config)
