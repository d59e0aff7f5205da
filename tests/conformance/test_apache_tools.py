"""Apache Kafka's own command-line tools, unmodified, against `penstock up`: what a user types and reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apache_tools import ApacheTools, Output
from confluent_kafka import Consumer, Producer
from penstock_up import PenstockUp

FOR_EVER = ("--config", "retention.ms=-1")
"""For records of long ago, which a broker may otherwise delete while the test reads them."""


@pytest.fixture(scope="module")
def tools(
    tmp_path_factory: pytest.TempPathFactory, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[ApacheTools]:
    with PenstockUp(tmp_path_factory.mktemp("tools"), {"offsets.topic.num.partitions": "5"}) as broker:
        tools = ApacheTools(broker.bootstrap, tmp_path_factory.mktemp("classes") / "archive.jsa")
        yield tools
        tools.report(record_testsuite_property)


def fill(tools: ApacheTools, topic: str, count: int, partition: int = 0, timestamp_ms: int = 0) -> None:
    """Records with the values 0, 1, 2, ..., a second apart where a first timestamp is given."""
    producer = Producer({"bootstrap.servers": tools.bootstrap, "enable.idempotence": True})
    for n in range(count):
        at = timestamp_ms + 1000 * n if timestamp_ms else 0
        producer.produce(topic, str(n).encode(), partition=partition, timestamp=at)
    assert producer.flush(30) == 0


def offsets(output: Output) -> dict[int, int]:
    """Partition -> offset, of the tables that kafka-consumer-groups prints."""
    heading, *rows = [row for row in output.table if "PARTITION" in row or (row[2:3] != [] and row[2].isdigit())]
    column = heading.index("NEW-OFFSET" if "NEW-OFFSET" in heading else "CURRENT-OFFSET")
    return {int(row[2]): int(row[column]) for row in rows}


def test_topics_are_created_described_altered_and_deleted(tools: ApacheTools, topic_name: str) -> None:
    options = ("--topic", topic_name)
    created = tools.run("kafka-topics", "--create", *options, "--partitions", "2", "--config", "retention.ms=60000000")
    assert created.lines == [f"Created topic {topic_name}."]
    again = tools.attempt("kafka-topics", "--create", *options)
    assert again.code == 1 and f"Topic '{topic_name}' already exists." in again.out
    assert topic_name in tools.run("kafka-topics", "--list").lines
    tools.run("kafka-topics", "--alter", *options, "--partitions", "4")
    heading, *partitions = tools.run("kafka-topics", "--describe", *options).lines
    assert "PartitionCount: 4\tReplicationFactor: 1\tConfigs: min.insync.replicas=1,retention.ms=60000000" in heading
    assert [line.split("\t")[1:5] for line in partitions] == [
        [f"Partition: {n}", "Leader: 1", "Replicas: 1", "Isr: 1"] for n in range(4)
    ]
    assert tools.run("kafka-topics", "--describe", "--unavailable-partitions").lines == []
    tools.run("kafka-topics", "--delete", *options)
    assert topic_name not in tools.run("kafka-topics", "--list").lines


def test_topics_that_cannot_be_are_refused_with_the_reason(tools: ApacheTools) -> None:
    too_many = tools.attempt("kafka-topics", "--create", "--topic", "three", "--replication-factor", "3")
    assert too_many.code == 1 and "Unable to replicate the partition 3 time(s)" in too_many.out
    unknown = tools.attempt("kafka-topics", "--describe", "--topic", "nowhere")
    assert unknown.code == 1 and "Topic 'nowhere' does not exist as expected" in unknown.out


def test_topic_configs_are_set_shown_and_taken_back(tools: ApacheTools, topic_name: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic_name)
    alter = ("kafka-configs", "--alter", "--topic", topic_name)
    tools.run(*alter, "--add-config", "retention.ms=5000000,cleanup.policy=[compact,delete]")
    shown = tools.run("kafka-configs", "--describe", "--topic", topic_name).out
    assert "retention.ms=5000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000000" in shown
    assert "cleanup.policy=compact,delete " in shown
    tools.run(*alter, "--delete-config", "cleanup.policy")
    everything = tools.run("kafka-configs", "--describe", "--topic", topic_name, "--all").out
    assert "cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}" in everything
    refused = tools.attempt(*alter, "--add-config", "retention.ms=soon")
    assert refused.code == 1 and "InvalidConfigurationException" in refused.out + refused.err


def test_broker_configs_have_their_levels(tools: ApacheTools) -> None:
    broker = ("kafka-configs", "--entity-type", "brokers", "--entity-name", "1")
    default = ("kafka-configs", "--entity-type", "brokers", "--entity-default")
    tools.run(*default, "--alter", "--add-config", "log.retention.ms=70000000")
    tools.run(*broker, "--alter", "--add-config", "log.retention.ms=80000000")
    shown = tools.run("kafka-configs", "--describe", "--entity-type", "brokers").out
    assert (
        "log.retention.ms=80000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=80000000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=70000000" in shown
    )
    tools.run(*broker, "--alter", "--delete-config", "log.retention.ms")
    tools.run(*default, "--alter", "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in tools.run(*broker, "--describe").out


def test_group_configs_and_client_metrics(tools: ApacheTools) -> None:
    group = ("kafka-configs", "--entity-type", "groups", "--entity-name", "configured")
    tools.run(*group, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000 " in tools.run(*group, "--describe").out
    metrics = ("kafka-configs", "--entity-type", "client-metrics", "--entity-name", "basic")
    tools.run(*metrics, "--alter", "--add-config", "interval.ms=5000,metrics=[org.apache.kafka.producer]")
    assert tools.run("kafka-client-metrics", "--list").lines == ["basic"]
    described = tools.run("kafka-client-metrics", "--describe", "--name", "basic").lines
    assert described[1:] == ["interval.ms=5000", "match=", "metrics=org.apache.kafka.producer"]
    tools.run("kafka-client-metrics", "--delete", "--name", "basic")
    assert tools.run("kafka-client-metrics", "--list").lines == []


def test_what_the_console_producer_reads_the_console_consumer_prints(tools: ApacheTools, topic_name: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic_name)
    parsing = ("parse.key=true", "key.separator=:", "parse.headers=true")
    tools.run(
        "kafka-console-producer",
        *("--topic", topic_name, "--compression-codec", "zstd"),
        *(word for one in parsing for word in ("--reader-property", one)),
        stdin="trace:a\tk1:v1\ntrace:b\tk2:v2\n",
    )
    printing = ("print.key=true", "print.headers=true", "print.offset=true", "print.partition=true")
    printed = tools.run(
        "kafka-console-consumer",
        *("--topic", topic_name, "--from-beginning", "--max-messages", "2", "--isolation-level", "read_committed"),
        *(word for one in printing for word in ("--formatter-property", one)),
    )
    assert printed.lines == [
        "Partition:0\tOffset:0\ttrace:a\tk1\tv1",
        "Partition:0\tOffset:1\ttrace:b\tk2\tv2",
    ]


def test_a_console_consumer_in_a_group_goes_on_where_the_last_one_ended(tools: ApacheTools, topic_name: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic_name)
    fill(tools, topic_name, 6)
    consume = ("kafka-console-consumer", "--topic", topic_name, "--group", f"group-of-{topic_name}")
    assert tools.run(*consume, "--from-beginning", "--max-messages", "4").lines == ["0", "1", "2", "3"]
    assert tools.run(*consume, "--max-messages", "2").lines == ["4", "5"]
    described = tools.run("kafka-consumer-groups", "--describe", "--group", f"group-of-{topic_name}")
    assert described.lines[-1].split()[1:6] == [topic_name, "0", "6", "6", "0"]


def test_a_group_with_a_member_is_listed_and_described(tools: ApacheTools, topic_name: str) -> None:
    group = f"group-of-{topic_name}"
    tools.run("kafka-topics", "--create", "--topic", topic_name, "--partitions", "2")
    fill(tools, topic_name, 5)
    consumer = Consumer(
        {
            "bootstrap.servers": tools.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic_name])
    assert len(consumer.consume(5, timeout=30)) == 5
    consumer.commit(asynchronous=False)
    describe = ("kafka-consumer-groups", "--describe", "--group", group)
    assert [group, "Stable"] in tools.run("kafka-consumer-groups", "--list", "--state").table
    assert [group, "Classic", "consumer"] in tools.run("kafka-groups", "--list").table
    by_partition = {row[2]: row for row in tools.run(*describe).table[1:]}
    assert by_partition["0"][3:6] == ["5", "5", "0"] and by_partition["0"][-1] == "reader"
    assert tools.run(*describe, "--state").table[-1][-3:] == ["range", "Stable", "1"]
    member = tools.run(*describe, "--members", "--verbose").lines[-1]
    assert "reader" in member and f"{topic_name}:0,1" in member
    refused = tools.attempt("kafka-consumer-groups", "--delete", "--group", group)
    assert "GroupNotEmptyException" in refused.out + refused.err
    consumer.close()
    assert tools.run(*describe, "--state").table[-1][-2:] == ["Empty", "0"]


def test_offsets_of_a_group_are_reset_in_every_way_and_deleted(tools: ApacheTools, topic_name: str) -> None:
    group = f"group-of-{topic_name}"
    tools.run("kafka-topics", "--create", "--topic", topic_name, "--partitions", "2", *FOR_EVER)
    fill(tools, topic_name, 10, timestamp_ms=1_700_000_000_000)
    reset = ("kafka-consumer-groups", "--reset-offsets", "--group", group)
    all_of_it = (*reset, "--topic", topic_name)
    first = f"{topic_name}:0"
    assert offsets(tools.run(*all_of_it, "--to-latest", "--execute")) == {0: 10, 1: 0}
    assert offsets(tools.run(*all_of_it, "--to-earliest", "--dry-run")) == {0: 0, 1: 0}
    assert offsets(tools.run(*reset, "--topic", first, "--shift-by", "-3", "--execute")) == {0: 7}
    assert offsets(tools.run(*reset, "--topic", first, "--to-datetime", "2023-11-14T22:13:24.000Z", "--execute")) == {
        0: 4
    }
    assert offsets(tools.run(*all_of_it, "--to-offset", "2", "--execute")) == {0: 2, 1: 0}
    assert offsets(tools.run("kafka-consumer-groups", "--describe", "--group", group)) == {0: 2, 1: 0}
    deleted = tools.run("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", first)
    assert [topic_name, "0", "Successful"] in deleted.table
    assert offsets(tools.run("kafka-consumer-groups", "--describe", "--group", group)) == {1: 0}
    tools.run("kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tools.run("kafka-consumer-groups", "--list").lines


def test_the_performance_tools_measure(tools: ApacheTools, topic_name: str) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic_name, "--partitions", "3")
    load = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    acked = ("--command-property", "acks=all", "--command-property", "compression.type=lz4")
    assert tools.run("kafka-producer-perf-test", "--topic", topic_name, *load, *acked).out.startswith(
        "20000 records sent, "
    )
    consumed = tools.run("kafka-consumer-perf-test", "--topic", topic_name, "--num-records", "20000")
    assert consumed.lines[-1].split(", ")[4] == "20000"


def test_offsets_records_producers_and_sizes_of_a_partition(
    tools: ApacheTools, topic_name: str, tmp_path: Path
) -> None:
    tools.run("kafka-topics", "--create", "--topic", topic_name, *FOR_EVER)
    fill(tools, topic_name, 10, timestamp_ms=1_700_000_000_000)
    ask = ("kafka-get-offsets", "--topic", topic_name, "--time")
    assert tools.run(*ask, "latest").lines == [f"{topic_name}:0:10"]
    assert tools.run(*ask, "1700000003000").lines == [f"{topic_name}:0:3"]
    assert tools.run(*ask, "max-timestamp").lines == [f"{topic_name}:0:9"]
    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic_name, "partition": 0, "offset": 4}]}))
    deleted = tools.run("kafka-delete-records", "--offset-json-file", str(wanted))
    assert deleted.lines[-1] == f"partition: {topic_name}-0\tlow_watermark: 4"
    assert tools.run(*ask, "earliest").lines == [f"{topic_name}:0:4"]
    heading, producer = tools.run(
        "kafka-transactions", "describe-producers", "--topic", topic_name, "--partition", "0"
    ).table
    assert dict(zip(heading, producer, strict=True))["LastSequence"] == "9"
    sizes = json.loads(tools.run("kafka-log-dirs", "--describe", "--topic-list", topic_name).lines[-1])
    [kept] = sizes["brokers"][0]["logDirs"][0]["partitions"]
    assert kept["partition"] == f"{topic_name}-0" and kept["size"] > 0


def test_the_cluster_tells_of_itself(tools: ApacheTools) -> None:
    identified = tools.run("kafka-cluster", "cluster-id").lines[-1]
    assert identified.startswith("Cluster ID: ") and len(identified.removeprefix("Cluster ID: ")) == 22
    host, port = tools.bootstrap.split(":")
    assert tools.run("kafka-cluster", "list-endpoints").table[-1] == ["1", host, port, "null", "unfenced", "broker"]
    versions = tools.run("kafka-broker-api-versions").out
    assert (
        versions.startswith(f"{tools.bootstrap} (id: 1 rack: null") and "Produce(0): 0 to 13 [usable: 13]" in versions
    )
    features = tools.run("kafka-features", "describe").out
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.3-IV0\s", features)
    assert re.search(r"Feature: kraft\.version\s.*FinalizedVersionLevel: 1\s", features)
