"""Apache Kafka's tools on Penstock's transactions: kafka-transactions asks the broker, kafka-dump-log reads files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from apache_tools import ApacheTools
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.ports import free_port
from penstock.core.transactions.states import Status
from proofs.processes import BrokerProcess

LIMIT_S = 60


class Bench(NamedTuple):
    tools: ApacheTools
    data: Path
    address: str


@pytest.fixture(scope="module")
def bench(
    tmp_path_factory: pytest.TempPathFactory, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[Bench]:
    directory = tmp_path_factory.mktemp("transactions")
    broker = BrokerProcess(directory / "broker", free_port(), transaction_state_log_num_partitions="1")
    broker.start()
    tools = ApacheTools(broker.address, directory / "archive.jsa")
    try:
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(LIMIT_S)
        yield Bench(tools, directory / "broker" / "1" / "data", broker.address)
    finally:
        assert broker.stop() == 0
    tools.report(record_testsuite_property)


def test_a_transaction_is_listed_described_and_aborted_and_its_records_are_read(bench: Bench) -> None:
    patience = {"transaction.timeout.ms": 600_000}  # five tools are run while it is open
    producer = Producer({"bootstrap.servers": bench.address, "transactional.id": "billing", "log_level": 0, **patience})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    producer.produce("orders", b"committed")
    producer.commit_transaction(LIMIT_S)
    producer.begin_transaction()
    producer.produce("orders", b"open")
    assert producer.flush(LIMIT_S) == 0

    assert "billing" in bench.tools.run("kafka-transactions", "list").out
    described = bench.tools.run("kafka-transactions", "describe", "--transactional-id", "billing").out
    assert "Ongoing" in described and "orders-0" in described
    producers = bench.tools.run("kafka-transactions", "describe-producers", "--topic", "orders", "--partition", "0").out
    assert " 2 " in producers or "\t2" in producers, "the open transaction begins behind the first one's marker"
    bench.tools.run("kafka-transactions", "abort", "--topic", "orders", "--partition", "0", "--start-offset", "2")

    (segment,) = (bench.data / "__transaction_state-0").glob("*.log")
    dumped = bench.tools.dump(segment, options=("--transaction-log-decoder",)).out
    assert dumped.count('"transactionalId":"billing"') == 5
    states = [Status(int(number)) for number in re.findall(r'"transactionStatus":(\d+)', dumped)]
    assert states == [
        Status.EMPTY,
        Status.ONGOING,
        Status.PREPARE_COMMIT,
        Status.COMPLETE_COMMIT,
        Status.ONGOING,
    ], "the abort wrote a marker only: the coordinator's view is its own"
