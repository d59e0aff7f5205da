"""`format("penstock")` with `kafka.security.protocol` and what belongs to it, against a real Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException

from penstock.wire import admin, blocking
from tests.conformance.secure_apache import PASSWORD, SecureKafka
from tests.pipeline.committed import read_committed

WAYS = [("SASL_SSL", "SCRAM-SHA-512"), ("MUTUAL", "")]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with SecureKafka(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture
def topic(kafka: SecureKafka) -> str:
    name = f"topic-{uuid4().hex[:12]}"
    with blocking.Client(kafka.bootstrap) as client:
        client.run(admin.create_topics(client.cluster, [admin.NewTopic(name, 2, 1)]))
    return name


def options(kafka: SecureKafka, listener: str, mechanism: str, **others: str) -> dict[str, str]:
    given = {"bootstrap.servers": kafka.at(listener), **kafka.settings(listener, mechanism)}
    return {f"kafka.{name}": value for name, value in given.items()} | others


def values(frame: Any) -> list[str]:
    return sorted(row.value for row in frame.selectExpr("string(value) AS value").collect())


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_what_is_written_is_read(spark: Any, kafka: SecureKafka, topic: str, listener: str, mechanism: str) -> None:
    rows = spark.range(100).selectExpr("string(id) AS key", "string(id) AS value")
    given = options(kafka, listener, mechanism)
    rows.write.format("penstock").mode("append").options(**given, topic=topic).save()
    read = spark.read.format("penstock").options(**given, subscribe=topic).load()
    assert values(read) == sorted(str(number) for number in range(100))


def test_a_stream_is_written_exactly_once_and_nothing_tells_the_secrets(
    spark: Any, kafka: SecureKafka, topic: str, tmp_path: Path
) -> None:
    key = kafka.certificates.key("client").read_text()
    shown = {
        "kafka.ssl.keystore.certificate.chain": kafka.certificates.chain("client").read_text(),
        "kafka.ssl.keystore.key": key,
    }
    given = options(kafka, "SASL_SSL", "SCRAM-SHA-512") | shown
    target, checkpoint = f"{topic}-out", str(tmp_path / "checkpoint")
    rows = spark.range(20).selectExpr("string(id) AS key", "string(id) AS value")
    rows.write.format("penstock").mode("append").options(**given, topic=topic).save()
    read = spark.readStream.format("penstock").options(**given, subscribe=topic, startingOffsets="earliest").load()
    writing = read.select("key", "value").writeStream.format("penstock").options(**given, topic=target)
    query = writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(90), "the stream did not end"
        told = [str(query.recentProgress), query._jsq.explainInternal(True)]
    finally:
        query.stop()
    read_committed(kafka.bootstrap, target, 20)  # a commit shows a moment after it was answered
    written = spark.read.format("penstock").options(**given, **{"kafka.isolation.level": "read_committed"})
    frame = written.option("subscribe", target).load()
    assert values(frame) == sorted(str(number) for number in range(20))
    told += [frame._jdf.queryExecution().toString(), str(frame._jdf.queryExecution().analyzed().treeString())]
    told += [path.read_text(errors="replace") for path in Path(checkpoint).rglob("*") if path.is_file()]
    assert len(told) > 6
    secrets = (PASSWORD, key.splitlines()[1])
    assert not [text for text in told if any(secret in text for secret in secrets)]


def test_a_wrong_password_fails_the_read_with_its_cause(spark: Any, kafka: SecureKafka, topic: str) -> None:
    settings = kafka.settings("SASL_SSL", "SCRAM-SHA-512", password="hush-hush")
    given = {f"kafka.{name}": value for name, value in settings.items()}
    reader = spark.read.format("penstock").options(**given, bootstrap=kafka.at("SASL_SSL"), subscribe=topic)
    with pytest.raises(PySparkException) as caught:
        reader.load().collect()
    said = str(caught.value)
    assert f"{kafka.at('SASL_SSL')}: authentication by SCRAM-SHA-512 failed" in said
    assert "hush-hush" not in said
