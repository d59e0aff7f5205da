"""What the cluster has: topics, their partitions, and offsets at an edge or a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.columnar.settings import Options
from penstock.sql.errors import SqlError, did_you_mean
from penstock.wire.conversation import REQUEST_TIMEOUT_MS
from penstock.wire.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, list_offsets
from penstock.wire.routes import refresh, retrying

if TYPE_CHECKING:
    from penstock.wire.conversation import Conversation

T = TypeVar("T")
Isolation = Literal["read_committed", "read_uncommitted"]


@dataclass(frozen=True)
class Brokers:
    """Where a cluster is, and how it is read."""

    bootstrap: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Kafka's own consumer settings"""
    isolation: Isolation = "read_committed"


class Catalog:
    """Asks one cluster; its answers about topics are kept."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self._client = Options(brokers.config).client(brokers.bootstrap)
        self._partitions: dict[str, list[int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def topics(self) -> dict[str, list[int]]:
        """Partitions by topic; internal topics ("__...") are there, but not offered."""
        if self._partitions is None:
            cluster = self._client.cluster
            self._run(retrying(cluster, lambda: refresh(cluster, all_topics=True), REQUEST_TIMEOUT_MS))
            self._partitions = {name: sorted(topic.partitions) for name, topic in sorted(cluster.topics.items())}
        return self._partitions

    def partitions(self, topic: str) -> list[int]:
        found = self.topics().get(topic)
        if found is None:
            offered = [name for name in self.topics() if not name.startswith("__")]
            hint = did_you_mean(topic, offered) or f"`penstock topic create {topic}` makes it; SHOW TABLES lists all"
            raise SqlError(f"there is no topic {topic!r} at {self.brokers.bootstrap}", hint)
        return found

    def first(self, topic: str) -> dict[int, int]:
        return self._offsets(topic, EARLIEST)

    def last(self, topic: str) -> dict[int, int]:
        """Where each partition ends for a reader of this isolation."""
        return self._offsets(topic, LATEST)

    def at(self, topic: str, timestamp_ms: int) -> dict[int, int | None]:
        """The first offset of that time or later; None where there is no such record."""
        return {one: offset if offset >= 0 else None for one, offset in self._offsets(topic, timestamp_ms).items()}

    def sizes(self) -> dict[str, int]:
        """How many offsets each topic spans, but for the internal ones."""
        offered = {name: some for name, some in self.topics().items() if not name.startswith("__")}
        every = [TopicPartition(name, one) for name, some in offered.items() for one in some]
        first, last = self._found(every, EARLIEST), self._found(every, LATEST)
        found = dict.fromkeys(offered, 0)
        for one in every:
            found[one.topic] += last[one] - first[one]
        return found

    def _offsets(self, topic: str, place: int) -> dict[int, int]:
        wanted = [TopicPartition(topic, one) for one in self.partitions(topic)]
        return {one.partition: offset for one, offset in self._found(wanted, place).items()}

    def _found(self, wanted: list[TopicPartition], place: int) -> dict[TopicPartition, int]:
        isolation = READ_COMMITTED if self.brokers.isolation == "read_committed" else READ_UNCOMMITTED
        asked = list_offsets(self._client.cluster, dict.fromkeys(wanted, place), isolation=isolation)
        return {one: found.offset for one, found in self._run(asked).items()}

    def _run(self, talk: Conversation[T]) -> T:
        try:
            return self._client.run(talk)
        except KafkaError as error:
            if error.code is ErrorCode.NETWORK_EXCEPTION:
                hint = "start a broker with `penstock up`, or name another with -b HOST:PORT"
                raise SqlError(f"no broker answers at {self.brokers.bootstrap}: {error}", hint) from error
            raise
