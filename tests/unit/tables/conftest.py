"""Tables of the session's broker, closed after the test; and a producer that tells where a record went."""

from __future__ import annotations

import time

import pytest

from penstock.client import Producer
from penstock.tables import Table

TIMEOUT_S = 20


@pytest.fixture
def opened(kafka_bootstrap_servers, tmp_path):
    """`opened(topic)` is a table that holds its topic; again with the same name, from the same directory."""
    made = []

    def make(topic, directory="table", **arguments):
        arguments.setdefault("wait_s", TIMEOUT_S)
        made.append(Table.open(kafka_bootstrap_servers, topic, tmp_path / directory, **arguments))
        return made[-1]

    yield make
    for table in made:
        table.close()


@pytest.fixture
def put(kafka_bootstrap_servers):
    """`put(topic, a="1", b=None)` returns where the last of the records went, as `min_offsets` has it."""

    def send(topic, partition=None, timestamp_ms=None, **values):
        with Producer(kafka_bootstrap_servers, config={"linger.ms": 0}) as producer:
            sent = [
                producer.send(topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms)
                for key, value in values.items()
            ]
            producer.flush()
            return {one.result(TIMEOUT_S).partition: one.result(TIMEOUT_S).offset for one in sent}

    return send


@pytest.fixture
def eventually():
    """Asks again and again until the answer is true."""

    def ask(question):
        deadline = time.monotonic() + TIMEOUT_S
        while not question():
            assert time.monotonic() < deadline, "it did not come about in time"
            time.sleep(0.01)

    return ask
