"""A broker that dies in the middle of a transaction: whoever comes up on its files completes it or aborts it.

A copy of the data directory, taken while the broker runs, is what a killed process leaves behind.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.broker.embedded import Embedded
from penstock.broker.marker_writing import MarkerWriting
from penstock.wire import admin, blocking, fetch, produce
from penstock.wire.group_offsets import fetch_offsets
from penstock.wire.offsets import EARLIEST, READ_COMMITTED
from penstock.wire.sessions import FetchLimits
from penstock.wire.transaction_admin import describe_transaction
from penstock.wire.transactions import Committed, GroupMember
from tests.conformance.three_nodes import until

SETTINGS = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}
COMMITTED = fetch.Settings(limits=FetchLimits(isolation=READ_COMMITTED))
TOPIC, NAME = "orders", "billing"
PLACE = TopicPartition(TOPIC, 0)
MEMBER = GroupMember("group")


class Broker:
    """One that runs in a directory, and others that start on copies of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._running: list[tuple[Embedded, blocking.Client]] = []

    def start(self, name: str) -> blocking.Client:
        broker = Embedded(SETTINGS, str(self.directory / name))
        client = blocking.Client(broker.start())
        self._running.append((broker, client))
        return client

    def killed(self) -> blocking.Client:
        """What comes up after a kill at this moment."""
        name = uuid4().hex
        self.copy(name)
        return self.start(name)

    def copy(self, name: str) -> None:
        """Without files on their way to their name, which may be gone before they are read."""
        shutil.copytree(self.directory / "first", self.directory / name, ignore=shutil.ignore_patterns("*.tmp"))

    def stop(self) -> None:
        for broker, client in self._running:
            client.close()
            broker.stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.stop()


def producer_of(client: blocking.Client, timeout_ms: int = 60_000) -> blocking.Producer:
    settings = produce.Settings(transactional_id=NAME, transaction_timeout_ms=timeout_ms)
    producer = blocking.Producer(client, settings)
    producer.init_transactions()
    return producer


def state(client: blocking.Client) -> str:
    return client.run(describe_transaction(client.cluster, NAME)).transaction_state


def read(client: blocking.Client, count: int) -> list[bytes | None]:
    fetcher = blocking.Fetcher(client, COMMITTED)
    fetcher.assign({PLACE: EARLIEST})
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for fetched in fetcher.poll(10_000) for record in fetched.records()]
    return values


def opened(broker: Broker, timeout_ms: int = 60_000) -> blocking.Producer:
    """A transaction with a record and an offset in it."""
    client = broker.start("first")
    client.run(admin.create_topics(client.cluster, [admin.NewTopic(TOPIC, 1, 1)]))
    producer = producer_of(client, timeout_ms)
    producer.begin()
    producer.send(TOPIC, b"first")
    producer.send_offsets(MEMBER, {PLACE: Committed(5)})
    producer.flush()
    return producer


def after(client: blocking.Client) -> list[bytes | None]:
    """What a reader sees when the next producer has committed a record of its own."""
    heir = producer_of(client)
    heir.begin()
    heir.send(TOPIC, b"next")
    heir.commit()
    values = read(client, 1)
    return values if values[-1] == b"next" else read(client, 2)


def test_an_open_transaction_is_aborted_by_the_next_producer(broker: Broker) -> None:
    opened(broker)
    client = broker.killed()
    assert state(client) == "Ongoing"
    assert after(client) == [b"next"]
    assert client.run(fetch_offsets(client.cluster, MEMBER.group_id, [PLACE], require_stable=True)) == {}


def test_an_open_transaction_is_aborted_when_its_time_is_over(broker: Broker) -> None:
    opened(broker, timeout_ms=5_000)
    client = broker.killed()
    until(lambda: state(client) == "CompleteAbort", "it is aborted")
    assert client.run(fetch_offsets(client.cluster, MEMBER.group_id, [PLACE], require_stable=True)) == {}


@pytest.mark.parametrize("commits", [True, False])
def test_what_was_decided_before_a_marker_was_written_is_carried_out(
    broker: Broker, commits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = opened(broker)

    async def refuse(self: object, marker: object, partitions: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
        return dict.fromkeys(partitions, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    with monkeypatch.context() as patched:
        patched.setattr(MarkerWriting, "write", refuse)
        if commits:
            producer.commit()
        else:
            producer.abort()
        broker.copy("copy")
    client = broker.start("copy")
    until(lambda: state(client) == ("CompleteCommit" if commits else "CompleteAbort"), "it is complete")
    assert after(client) == ([b"first", b"next"] if commits else [b"next"])
    found = client.run(fetch_offsets(client.cluster, MEMBER.group_id, [PLACE], require_stable=True))
    assert [one.offset for one in found.values()] == ([5] if commits else [])


def test_between_two_markers_offsets_are_not_stable_and_then_they_are(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T6: the offsets of an open transaction are told to nobody who asks for stable ones."""
    producer = opened(broker)
    client = producer._client
    with pytest.raises(KafkaError) as unstable:
        client.run(fetch_offsets(client.cluster, MEMBER.group_id, [PLACE], require_stable=True, timeout_ms=1_000))
    assert unstable.value.code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    producer.commit()
    found = client.run(fetch_offsets(client.cluster, MEMBER.group_id, [PLACE], require_stable=True))
    assert found[PLACE].offset == 5


def test_after_the_end_everything_is_as_it_was(broker: Broker) -> None:
    producer = opened(broker)
    producer.commit()
    first = broker._running[0][1]
    until(lambda: state(first) == "CompleteCommit", "it is complete")
    client = broker.killed()
    assert state(client) == "CompleteCommit"
    assert after(client) == [b"first", b"next"]
