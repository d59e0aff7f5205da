"""Consumer groups of KIP-848 as Apache Kafka's own tools use and show them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apache_tools import ApacheTools
from confluent_kafka import Consumer
from penstock_up import PenstockUp

NEW = ("--command-property", "group.protocol=consumer")


@pytest.fixture
def tools(penstock_broker: PenstockUp, record_property: object) -> Iterator[ApacheTools]:
    yield ApacheTools(penstock_broker.bootstrap)


def test_the_java_consumer_of_the_new_protocol_goes_on_where_the_last_one_ended(
    tools: ApacheTools, topic_name: str
) -> None:
    group = f"group-of-{topic_name}"
    tools.run("kafka-topics", "--create", "--topic", topic_name)
    tools.run("kafka-console-producer", "--topic", topic_name, stdin="".join(f"{at}\n" for at in range(6)))
    consume = ("kafka-console-consumer", "--topic", topic_name, "--group", group, *NEW)
    assert tools.run(*consume, "--from-beginning", "--max-messages", "4").lines == ["0", "1", "2", "3"]
    assert tools.run(*consume, "--max-messages", "2").lines == ["4", "5"]
    described = tools.run("kafka-consumer-groups", "--describe", "--group", group)
    assert described.lines[-1].split()[1:6] == [topic_name, "0", "6", "6", "0"]
    assert [group, "Consumer", "consumer"] in tools.run("kafka-groups", "--list").table


def test_the_java_consumer_reads_by_an_expression(tools: ApacheTools, topic_name: str) -> None:
    for end in ("a", "b"):
        tools.run("kafka-topics", "--create", "--topic", f"{topic_name}.{end}")
        tools.run("kafka-console-producer", "--topic", f"{topic_name}.{end}", stdin=f"{end}\n")
    include = ("--include", f"{topic_name}[.](a|b)", "--group", f"group-of-{topic_name}", "--from-beginning")
    assert sorted(tools.run("kafka-console-consumer", *include, *NEW, "--max-messages", "2").lines) == ["a", "b"]


def test_a_group_with_a_member_is_shown_with_its_epochs(tools: ApacheTools, topic_name: str) -> None:
    group = f"group-of-{topic_name}"
    tools.run("kafka-topics", "--create", "--topic", topic_name, "--partitions", "2")
    consumer = Consumer({"bootstrap.servers": tools.bootstrap, "group.id": group, "group.protocol": "consumer"})
    consumer.subscribe([topic_name])
    try:
        while len(consumer.assignment()) < 2:
            consumer.poll(0.2)
        assert [group, "Consumer", "Stable"] in [
            [row[0], *row[1:]] for row in tools.run("kafka-consumer-groups", "--list", "--state", "--type").table
        ]
        state = tools.run("kafka-consumer-groups", "--describe", "--group", group, "--state", "--verbose")
        (row,) = [line.split() for line in state.lines if line.startswith(group)]
        assert "uniform" in row and "Stable" in row
        members = tools.run("kafka-consumer-groups", "--describe", "--group", group, "--members", "--verbose").out
        assert f"{topic_name}:0,1" in members
        refused = tools.attempt("kafka-consumer-groups", "--delete", "--group", group)
        assert "not empty" in refused.out + refused.err
    finally:
        consumer.close()
    tools.run("kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tools.run("kafka-consumer-groups", "--list").lines
