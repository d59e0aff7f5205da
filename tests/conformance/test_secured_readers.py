"""What stands on our own client reaches a secured cluster by the same settings: columns, SQL, tables, the command."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from penstock.base.ids import TopicPartition
from penstock.cli.main import main
from penstock.client import Admin
from penstock.columnar.ranges import read_range
from penstock.columnar.writing import TopicWriter
from penstock.sql import query
from penstock.tables import Table, TableError
from penstock.wire import admin, blocking
from penstock.wire.group_offsets import commit_offsets
from penstock.wire.transactions import Committed, GroupMember
from tests.conformance.secure_apache import PASSWORD, USER, SecureKafka


@pytest.fixture
def settings(secure_kafka: SecureKafka) -> dict[str, str]:
    """By the names of librdkafka, which the command line knows too."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(secure_kafka.certificates.authority),
    }


@pytest.fixture
def topic(secure_kafka: SecureKafka) -> str:
    """Keys a and b, written over the plain listener."""
    name = f"topic-{uuid4().hex[:12]}"
    with blocking.Client(secure_kafka.bootstrap) as client:
        compacted = admin.NewTopic(name, 1, 1, {"cleanup.policy": "compact"})
        client.run(admin.create_topics(client.cluster, [compacted]))
        producer = blocking.Producer(client)
        producer.send(name, b'{"n":1}', key=b"a")
        producer.send(name, b'{"n":2}', key=b"b")
        producer.flush()
    return name


def test_columns_are_written_and_read(secure_kafka: SecureKafka, topic: str, settings: dict[str, str]) -> None:
    config = {f"kafka.{name}": value for name, value in settings.items()}
    with TopicWriter(secure_kafka.at("SASL_SSL"), config, topic=topic) as writer:
        writer.write(pa.table({"key": [b"c"], "value": [b"3"]}))
    (batch,) = read_range(secure_kafka.at("SASL_SSL"), topic, 0, 2, 3, wanted=["value"], config=config)
    assert batch.column("value").to_pylist() == [b"3"]


def test_a_query_is_answered(secure_kafka: SecureKafka, topic: str, settings: dict[str, str]) -> None:
    found = query(secure_kafka.at("SASL_SSL"), f'select sum(n) as n from "{topic}"', config=settings)
    assert found.to_pylist() == [{"n": 3}]


def test_a_table_is_followed(secure_kafka: SecureKafka, topic: str, settings: dict[str, str], tmp_path: Path) -> None:
    with Table.open(secure_kafka.at("SASL_SSL"), topic, tmp_path, wait_s=20, config=settings) as table:
        entry = table.get("b")
        assert entry is not None and entry.value == b'{"n":2}'


def test_a_table_that_is_not_let_in_says_so_and_leaves_its_directory(
    secure_kafka: SecureKafka, topic: str, settings: dict[str, str], tmp_path: Path
) -> None:
    wrong = settings | {"sasl.password": "hush-hush"}
    for _ in range(2):
        with pytest.raises(TableError, match="authentication by SCRAM-SHA-512 failed") as caught:
            Table.open(secure_kafka.at("SASL_SSL"), topic, tmp_path, wait_s=20, config=wrong)
        assert "hush-hush" not in str(caught.value)


def test_the_command_line_passes_its_properties_on(
    secure_kafka: SecureKafka,
    topic: str,
    settings: dict[str, str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    place = TopicPartition(topic, 0)
    with blocking.Client(secure_kafka.bootstrap) as client:
        client.run(commit_offsets(client.cluster, GroupMember(f"group-{topic}"), {place: Committed(1)}))
    common = ["-b", secure_kafka.at("SASL_SSL")]
    common += [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    assert main(["sql", f'select count(*) as c from "{topic}"', "--format", "json", *common]) == 0
    assert '{"c":2}' in capfd.readouterr().out.replace(" ", "")
    assert main(["table", "get", topic, "a", "--dir", str(tmp_path), *common]) == 0
    assert "1" in capfd.readouterr().out
    assert main(["group", "offset-delete", f"group-{topic}", "--topic", topic, "--yes", *common]) == 0
    with Admin(secure_kafka.bootstrap) as plain:
        assert plain.group_offsets(f"group-{topic}") == {}
