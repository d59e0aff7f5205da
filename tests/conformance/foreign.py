"""What the conformance tests ask of every foreign client, in one set of words: an adapter puts them into its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

TIMEOUT_S = 30
Headers = tuple[tuple[str, bytes], ...]


class Sent(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Received(NamedTuple):
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None
    headers: Headers
    timestamp_ms: int


class Reader(Protocol):
    """A consumer of one topic: of all its partitions, or, in a group, of those that it is given."""

    def poll(self, timeout_s: float) -> list[Received]: ...
    def assignment(self) -> set[int]: ...
    def commit(self) -> None: ...
    def seek_to_beginning(self) -> None: ...
    def seek_to_time(self, timestamp_ms: int) -> None: ...
    def close(self) -> None: ...


class ForeignClient(Protocol):
    def create_topic(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None: ...
    def topics(self) -> list[str]: ...
    def partition_count(self, topic: str) -> int: ...
    def topic_config(self, topic: str, name: str) -> str: ...
    def delete_topic(self, topic: str) -> None: ...

    def produce(
        self, topic: str, records: Iterable[Sent], *, codec: str = "none", idempotent: bool = False
    ) -> list[tuple[int, int]]:
        """Partition and offset of each record, once all are acked by all."""
        ...

    def read(self, topic: str, *, group: str | None = None, fetch_bytes: int = 1 << 20) -> Reader:
        """From the beginning, or from where the group stands. Commits only when told to."""
        ...

    def groups(self) -> list[str]: ...
    def group_state(self, group: str) -> str: ...
    def group_member_count(self, group: str) -> int: ...
    def committed(self, group: str, topic: str) -> dict[int, int]: ...
    def close(self) -> None: ...


class DeletesGroups(ForeignClient, Protocol):
    def delete_group(self, group: str) -> None: ...
