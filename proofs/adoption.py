"""A directory of Apache Kafka 4.3.0 is adopted, served and changed by Penstock, and goes back to Apache Kafka.

Twice: with clean stops, and with both brokers killed, so that each recovers what the other left. After every change of
hands everything is read again: topics, configurations, records by readers of both isolation levels, groups' offsets.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import TopicPartition

from proofs.adoption_clients import TIMEOUT_S, Clients, Found, key_of, value_of
from proofs.either_broker import EitherBroker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS = 20
SEGMENT_RECORDS_MAX = 1100
"""A record has a thousand bytes, and a segment of the compacted topic a MiB."""
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
USER = ("--entity-type", "users", "--entity-name", "alice")
USER_CONFIGS = ("producer_byte_rate=1048576", "SCRAM-SHA-256=[iterations=4096,password=secret]")
"""A quota and a credential, which the tool sets one at a time."""


def run(records: int = 4000) -> dict[str, object]:
    """`records` in each of the larger topics: enough for several segments of the smallest size there is."""
    figures: dict[str, object] = {}
    for kill in (False, True):
        with tempfile.TemporaryDirectory(prefix="adoption-") as place:
            figures["after kills" if kill else "after clean stops"] = hand_over_and_back(Path(place), records, kill)
    return figures


def hand_over_and_back(directory: Path, records: int, kill: bool) -> dict[str, int]:
    node = EitherBroker(directory)
    node.format()
    story = Story(node.data, records)
    with node.apache(kill=kill), story.chapter(node.address):
        story.begin()
        for config in USER_CONFIGS:
            node.tool("kafka.admin.ConfigCommand", *_at(node), "--alter", *USER, "--add-config", config)
        story.check()
    with node.penstock(kill=kill), story.chapter(node.address):
        story.check()
        story.go_on("penstock")
        story.compact()
        story.check()
    with node.apache(kill=kill), story.chapter(node.address):
        story.check()
        story.check_with_apache_tools(node)
        story.end_open_transaction()
        story.go_on("apache")
        story.check()
    with node.penstock(), story.chapter(node.address):
        story.check()
    return dict(story.verified)


@dataclass
class Expected:
    """A partition as its writers know it."""

    records: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    """offset -> key and value, of everything a reader of uncommitted data sees"""
    hidden: set[int] = field(default_factory=set)
    """offsets that a reader of committed data does not see"""
    compacted: bool = False
    end: int = 0


class Story:
    """What happens to the cluster, and what must be found there after each chapter."""

    def __init__(self, data: Path, records: int) -> None:
        self._data = data
        self._records = records
        self.verified: Counter[str] = Counter()
        self.topics: dict[str, int] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.partitions: dict[tuple[str, int], Expected] = {}
        self.starts: dict[str, int] = {}
        self.groups: dict[str, dict[str, int]] = {}
        self._compacted_left = 0
        """records of the compacted topic at the last check"""

    @contextmanager
    def chapter(self, address: str) -> Iterator[None]:
        """With clients of its own: librdkafka's admin may wait for a connection that it lost for good."""
        self._clients = Clients(address)
        yield
        self.verified["hand-overs"] += 1

    def begin(self) -> None:
        """On Apache Kafka: topics of every kind, transactions, groups."""
        self._create("plain", 3, retention_ms="864000000", max_message_bytes="2000000")
        self._create("segments", segment_bytes="1048576", index_interval_bytes="1024")
        self._create("packed", compression_type="zstd")
        self._create("codecs")
        self._create("compacted", cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01")
        self._create("trimmed")
        self._create("transactions", 2)
        self._create("open")
        self._create("doomed")
        for partition in range(3):
            self._write("plain", self._records // 4, partition)
        self._write("segments", self._records)
        self._write("packed", self._records // 4)
        for codec in CODECS:
            self._write("codecs", 100, codec=codec)
        self._write("compacted", self._records, keys=KEYS)
        self.partitions["compacted", 0].compacted = True
        self._write("trimmed", 300)
        self._trim("trimmed", 100)
        self._write("doomed", 10)
        self._transact("writer", "transacted", 5)
        self._leave_open()
        self._commit("readers", "plain", 17, "classic")
        self._commit("modern", "plain", 23, "consumer")

    def go_on(self, by: str) -> None:
        """On either broker: write on, commit on, create and delete."""
        self._write("plain", 200, 1)
        self._write("segments", self._records // 2)
        self._write("packed", 100)
        for codec in CODECS:
            self._write("codecs", 50, codec=codec)
        self._write("compacted", self._records // 2, keys=KEYS)
        self._trim("trimmed", self.starts["trimmed"] + 50)
        self._commit("readers", "plain", self.groups["readers"]["plain-0"] + 10, "classic")
        self._commit("modern", "plain", self.groups["modern"]["plain-0"] + 10, "consumer")
        self._commit(f"late-{by}", "segments", 5, "classic")
        self._create(f"made-by-{by}", 2, cleanup_policy="compact,delete")
        self._write(f"made-by-{by}", 50, 1)
        if "doomed" in self.topics:
            self._delete("doomed")
        if by == "apache":
            self._transact("writer", "transacted", 3)
            self._commit("modern", "plain", 40, "consumer")

    def compact(self) -> None:
        """Until the broker's cleaner has been there: below the last segment, no key is left twice."""
        last_segment = self.partitions["compacted", 0].end - SEGMENT_RECORDS_MAX
        without_cleaning = self._compacted_left + self._records // 2

        def cleaned() -> bool:
            found = self._clients.read("compacted")
            keys = [one.key for one in found if one.offset < last_segment]
            return len(found) < without_cleaning and len(keys) == len(set(keys))

        _await(cleaned, "the cleaner leaves each key once")
        self.verified["compactions seen"] += 1

    def end_open_transaction(self) -> None:
        """The next producer of that transactional id aborts what the first one left open."""
        self._clients.transactional("left open")
        expected = self.partitions["open", 0]
        expected.hidden = set(range(5, 10))
        expected.end += 1
        self._write("open", 5)

    def check(self) -> None:
        """Everything, as clients see it."""
        clients, verified = self._clients, self.verified
        assert clients.topics() == self.topics
        for topic in self.topics:
            assert clients.configs(topic) == self.configs[topic], topic
            assert clients.start_offset(topic) == self.starts.get(topic, 0), topic
            verified["topic configurations"] += len(self.configs[topic])
        verified["topics"] += len(self.topics)
        for (topic, partition), expected in self.partitions.items():
            for committed in (False, True):
                found = clients.read(topic, partition, committed=committed)
                _compare(f"{topic}-{partition}", expected, self.starts.get(topic, 0), found, committed)
                if topic == "compacted":
                    self._compacted_left = len(found)
                verified["records, read committed" if committed else "records, read uncommitted"] += len(found)
        assert clients.groups() == sorted(self.groups)
        for group, offsets in self.groups.items():
            assert clients.committed(group) == offsets, group
            verified["committed offsets"] += len(offsets)

    def check_with_apache_tools(self, node: EitherBroker) -> None:
        """Kafka's own tools on what Penstock left, and what only they can show."""
        for group, offsets in self.groups.items():
            shown = node.tool(GROUPS_TOOL, *_at(node), "--describe", "--group", group, "--offsets")
            rows = [line.split() for line in shown.splitlines() if line.startswith(group)]
            assert {f"{row[1]}-{row[2]}": int(row[3]) for row in rows} == offsets, shown
            self.verified["groups described by Apache's tool"] += 1
        user = node.tool("kafka.admin.ConfigCommand", *_at(node), "--describe", *USER)
        assert "producer_byte_rate=1048576" in user and "SCRAM-SHA-256=iterations=4096" in user, user
        segments = sorted(path for path in node.data.glob("*-*/*.log") if path.stat().st_size)
        names = ",".join(str(path) for path in segments)
        dumped = node.tool("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", names)
        assert "isvalid: false" not in dumped
        self.verified["segments dumped by Apache's tool"] += len(segments)

    def _create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        self._clients.create(topic, partitions, **configs)
        self.topics = dict(sorted({**self.topics, topic: partitions}.items()))
        self.configs[topic] = dict(sorted((name.replace("_", "."), value) for name, value in configs.items()))
        for partition in range(partitions):
            self.partitions[topic, partition] = Expected()

    def _delete(self, topic: str) -> None:
        self._clients.delete(topic)
        del self.topics[topic]
        self.partitions = {place: kept for place, kept in self.partitions.items() if place[0] != topic}

    def _write(self, topic: str, count: int, partition: int = 0, keys: int = 0, codec: str = "none") -> None:
        expected = self.partitions[topic, partition]
        self._clients.write(topic, expected.end, count, partition=partition, keys=keys, codec=codec)
        for number in range(expected.end, expected.end + count):
            expected.records[number] = (key_of(number, keys), value_of(number))
        expected.end += count

    def _trim(self, topic: str, before: int) -> None:
        """Until it is on the disk, too: Kafka writes down where logs start now and then, and a kill may come first."""
        self._clients.delete_records(topic, before)
        self.starts[topic] = before
        checkpoint = self._data / "log-start-offset-checkpoint"
        _await(lambda: f"\n{topic} 0 {before}\n" in checkpoint.read_text(), f"{topic} starts at {before} on the disk")

    def _commit(self, group: str, topic: str, offset: int, protocol: str) -> None:
        self._clients.commit(group, topic, offset, protocol)
        self.groups.setdefault(group, {})[f"{topic}-0"] = offset

    def _transact(self, transactional_id: str, group: str, rounds: int) -> None:
        """Transactions over two partitions, every other one aborted, each with an offset of a group."""
        producer = self._clients.transactional(transactional_id)
        reader = self._clients.join(group, "trimmed", "classic")
        for one in range(rounds):
            committed = one % 2 == 0
            producer.begin_transaction()
            for partition in range(2):
                self._write_in("transactions", partition, 10, producer, hidden=not committed)
            offset = self.starts["trimmed"] + one
            position = [TopicPartition("trimmed", 0, offset)]
            producer.send_offsets_to_transaction(position, reader.consumer_group_metadata(), TIMEOUT_S)
            if committed:
                producer.commit_transaction(TIMEOUT_S)
                self.groups[group] = {"trimmed-0": offset}
            else:
                producer.abort_transaction(TIMEOUT_S)
            for partition in range(2):
                self.partitions["transactions", partition].end += 1
        reader.close()

    def _leave_open(self) -> None:
        """Five records, then a transaction that nobody ends: its records, and those after it, stay hidden."""
        self._write("open", 5)
        producer = self._clients.transactional("left open")
        producer.begin_transaction()
        self._write_in("open", 0, 5, producer, hidden=True)
        self._abandoned = producer
        self._write("open", 5)
        self.partitions["open", 0].hidden |= set(range(10, 15))

    def _write_in(self, topic: str, partition: int, count: int, producer: object, *, hidden: bool) -> None:
        expected = self.partitions[topic, partition]
        for number in range(expected.end, expected.end + count):
            producer.produce(topic, value_of(number), key_of(number, 0), partition=partition)  # type: ignore[attr-defined]  # librdkafka's Producer is untyped
            expected.records[number] = (key_of(number, 0), value_of(number))
            if hidden:
                expected.hidden.add(number)
        assert producer.flush(TIMEOUT_S) == 0  # type: ignore[attr-defined]  # as above
        expected.end += count


def _at(node: EitherBroker) -> tuple[str, str]:
    return "--bootstrap-server", node.address


def _compare(place: str, expected: Expected, start: int, found: list[Found], committed: bool) -> None:
    """Every record that must be there, once, at its offset, in order, and no other."""
    wanted = {
        offset: record
        for offset, record in expected.records.items()
        if offset >= start and not (committed and offset in expected.hidden)
    }
    offsets = [one.offset for one in found]
    assert offsets == sorted(set(offsets)), f"{place}: offsets are out of order or repeated"
    strange = [one.offset for one in found if wanted.get(one.offset) != (one.key, one.value)]
    assert not strange, f"{place}: not what was written at {strange[:5]}"
    if expected.compacted:
        newest = {key: offset for offset, (key, _) in wanted.items()}
        missing = sorted(set(newest.values()) - set(offsets))
    else:
        missing = sorted(set(wanted) - set(offsets))
    assert not missing, (
        f"{place}, {'committed' if committed else 'uncommitted'}: {len(missing)} lost, {missing[:5]} first"
    )


def _await(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline, f"not in {TIMEOUT_S} s: {what}"
        time.sleep(0.02)
