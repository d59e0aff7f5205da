"""`read_range` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.columnar.ranges import read_range
from penstock.columnar.schema import RECORD_SCHEMA
from penstock.columnar.writing import TopicWriter

Topics = Callable[..., str]


def fill(bootstrap: str, topic: str, count: int, **config: str) -> None:
    """Rows with the values 0, 1, 2 ... in partition 0."""
    options = {name.replace("_", "."): value for name, value in config.items()}
    with TopicWriter(bootstrap, options, topic=topic) as writer:
        numbers = range(count)
        writer.write(pa.table({"key": [b"k%d" % n for n in numbers], "value": [b"%d" % n for n in numbers]}))


def offsets(batches: list[pa.RecordBatch]) -> list[int]:
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_a_range_is_read_with_every_column(kafka_bootstrap_servers: str, kafka_topic: str, kafka_producer: Any) -> None:
    for number in range(100):
        kafka_producer.send(kafka_topic, b"%d" % number, key=b"k%d" % number, headers=[("h", b"x")])
    kafka_producer.flush()
    batches = list(read_range(kafka_bootstrap_servers, kafka_topic, 0, 10, 90))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert {batch.schema for batch in batches} == {RECORD_SCHEMA(False)}
    assert [row["offset"] for row in rows] == list(range(10, 90))
    assert rows[0]["key"] == b"k10" and rows[0]["value"] == b"10"
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {(kafka_topic, 0, 0)}


def test_a_range_of_many_fetches_is_read_in_order_and_in_bounded_pieces(
    kafka_bootstrap_servers: str, kafka_topic: str
) -> None:
    fill(kafka_bootstrap_servers, kafka_topic, 20_000, batch_size="5000")
    config = {"kafka.max.partition.fetch.bytes": "30000"}
    batches = list(
        read_range(kafka_bootstrap_servers, kafka_topic, 0, 7, 19_990, wanted={"offset"}, config=config, batch_rows=500)
    )
    assert offsets(batches) == list(range(7, 19_990))
    assert max(batch.num_rows for batch in batches) == 500


def test_an_empty_range_asks_nobody() -> None:
    assert list(read_range("nowhere.invalid:1", "t", 0, 7, 7)) == []


def trimmed(admin: Any, topics: Topics, bootstrap: str) -> str:
    """A topic with offsets 0 to 99 of which the first 40 are gone."""
    topic = topics()
    fill(bootstrap, topic, 100)
    admin.delete_records({TopicPartition(topic, 0): 40})
    return topic


def test_offsets_that_are_gone_are_an_error(
    kafka_bootstrap_servers: str, kafka_admin: Any, kafka_topics: Topics
) -> None:
    topic = trimmed(kafka_admin, kafka_topics, kafka_bootstrap_servers)
    with pytest.raises(KafkaError, match=f"topic {topic} partition 0: offsets 0 to 100 are not in the log") as caught:
        list(read_range(kafka_bootstrap_servers, topic, 0, 0, 100))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_offsets_that_are_gone_can_be_passed_over(
    kafka_bootstrap_servers: str, kafka_admin: Any, kafka_topics: Topics
) -> None:
    topic = trimmed(kafka_admin, kafka_topics, kafka_bootstrap_servers)
    found = read_range(kafka_bootstrap_servers, topic, 0, 0, 100, wanted={"offset"}, lost="skip")
    assert offsets(list(found)) == list(range(40, 100))


def test_a_topic_that_was_made_anew_has_none_of_the_old_offsets(kafka_bootstrap_servers: str, kafka_topic: str) -> None:
    fill(kafka_bootstrap_servers, kafka_topic, 10)
    assert list(read_range(kafka_bootstrap_servers, kafka_topic, 0, 500, 600, lost="skip")) == []


def test_offsets_that_go_while_they_are_read_can_be_passed_over(
    kafka_bootstrap_servers: str, kafka_admin: Any, kafka_topic: str
) -> None:
    fill(kafka_bootstrap_servers, kafka_topic, 5000, batch_size="1000")
    config = {"kafka.max.partition.fetch.bytes": "1000"}
    found = read_range(kafka_bootstrap_servers, kafka_topic, 0, 0, 5000, wanted={"offset"}, config=config, lost="skip")
    read = offsets([next(found)])
    kafka_admin.delete_records({TopicPartition(kafka_topic, 0): 4000})
    read += offsets(list(found))
    assert read == sorted(set(read)) and read[-1000:] == list(range(4000, 5000)) and len(read) < 5000


def test_a_range_that_does_not_end_is_given_up_with_the_reason(kafka_bootstrap_servers: str, kafka_topic: str) -> None:
    fill(kafka_bootstrap_servers, kafka_topic, 3)
    found = read_range(kafka_bootstrap_servers, kafka_topic, 0, 0, 5, wanted={"offset"}, timeout_ms=1_000)
    with pytest.raises(KafkaError, match=r"no record from offset 3 on arrived within 1000 ms.* the log ends at 3"):
        list(found)


def test_a_topic_that_is_not_there_is_named(kafka_bootstrap_servers: str) -> None:
    with pytest.raises(KafkaError, match="topic missing partition 0 cannot be read: topic missing: UNKNOWN"):
        list(read_range(kafka_bootstrap_servers, "missing", 0, 0, 5, timeout_ms=1_000))


def test_a_reader_that_stops_early_leaves_nothing_open(kafka_bootstrap_servers: str, kafka_topic: str) -> None:
    fill(kafka_bootstrap_servers, kafka_topic, 1000, batch_size="2000")
    config = {"kafka.max.partition.fetch.bytes": "2000"}
    found = read_range(kafka_bootstrap_servers, kafka_topic, 0, 0, 1000, wanted={"offset"}, config=config)
    assert next(found).num_rows > 0
    found.close()  # type: ignore[attr-defined]  # it is a generator; an open socket would be a ResourceWarning


def test_security_that_cannot_be_followed_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"kafka\.sasl\.mechanism is needed"):
        list(read_range("nowhere.invalid:1", "t", 0, 0, 5, config={"kafka.security.protocol": "SASL_SSL"}))


def test_an_unknown_isolation_is_refused() -> None:
    with pytest.raises(ValueError, match="isolation is read_committed or read_uncommitted, not 'snapshot'"):
        list(read_range("nowhere.invalid:1", "t", 0, 0, 5, isolation="snapshot"))  # type: ignore[arg-type]  # the test
