"""`penstock txn` against a real broker: what is listed and described, and a transaction that hangs is ended."""

from __future__ import annotations

import json

import pytest
from conftest import RunningCluster

from penstock.base.ids import TopicPartition
from penstock.cli.main import main
from penstock.wire import admin, blocking, produce
from penstock.wire.offsets import LATEST, READ_COMMITTED, list_offsets


def say(capfd: pytest.CaptureFixture[str], cluster: RunningCluster, *arguments: str) -> str:
    capfd.readouterr()
    assert main(["txn", *arguments, "-b", cluster.bootstrap]) == 0, capfd.readouterr().err
    return capfd.readouterr().out


def test_a_transaction_is_listed_described_and_aborted(
    penstock_broker: RunningCluster, topic_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    name, partition = f"id-{topic_name}", TopicPartition(topic_name, 0)
    with blocking.Client(penstock_broker.bootstrap) as client:
        client.run(admin.create_topics(client.cluster, [admin.NewTopic(topic_name, 1, 1)]))
        producer = blocking.Producer(client, produce.Settings(transactional_id=name))
        producer.init_transactions()
        producer.begin()
        producer.send(topic_name, b"open")
        producer.flush()

        listed = json.loads(say(capfd, penstock_broker, "list", "--state", "Ongoing", "--format", "json"))
        assert name in [one["id"] for one in listed]
        described = json.loads(say(capfd, penstock_broker, "describe", name, "--format", "json"))
        assert (described["state"], described["partitions"]) == ("Ongoing", [f"{topic_name}-0"])

        def stable() -> int:
            found = client.run(list_offsets(client.cluster, {partition: LATEST}, isolation=READ_COMMITTED))
            return found[partition].offset

        assert "would abort" in say(capfd, penstock_broker, "abort", topic_name, "0", "--dry-run")
        assert stable() == 0
        assert "aborted" in say(capfd, penstock_broker, "abort", topic_name, "0", "--start-offset", "0", "--yes")
        assert stable() == 2, "the record and its marker: readers of committed records are past them"


def test_what_is_not_there_is_said(
    penstock_broker: RunningCluster, topic_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with blocking.Client(penstock_broker.bootstrap) as client:
        client.run(admin.create_topics(client.cluster, [admin.NewTopic(topic_name, 1, 1)]))
    assert main(["txn", "abort", topic_name, "0", "--yes", "-b", penstock_broker.bootstrap]) == 1
    assert "no such transaction is open" in capfd.readouterr().err
    assert main(["txn", "describe", "nobody", "-b", penstock_broker.bootstrap]) == 1
    told = capfd.readouterr().err
    assert "no transactional id 'nobody' is known" in told and "penstock txn list" in told
