"""What goes wrong in a client: one family, so that `except ClientError` catches all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import KafkaException

from penstock.base.errors import RETRIABLE, ErrorCode
from penstock.base.ids import TopicPartition

_LOCAL_RETRIABLE = frozenset(
    {
        LibraryError._ALL_BROKERS_DOWN,
        LibraryError._TRANSPORT,
        LibraryError._RESOLVE,
        LibraryError._TIMED_OUT,
        LibraryError._WAIT_COORD,
        LibraryError._UNKNOWN_TOPIC,
        LibraryError._UNKNOWN_PARTITION,
    }
)
LISTED_MAX = 8
"""in the text of one error"""

_UNREACHABLE = frozenset(
    {LibraryError._ALL_BROKERS_DOWN, LibraryError._TRANSPORT, LibraryError._RESOLVE, LibraryError._TIMED_OUT}
)


class ClientError(Exception):
    """An operation failed. `code` is Kafka's error code where a broker said so, negative where the library did."""

    def __init__(
        self,
        message: str,
        *,
        code: int = LibraryError._FAIL,
        name: str = "",
        retriable: bool = False,
        fatal: bool = False,
        requires_abort: bool = False,
    ) -> None:
        super().__init__(message)
        self.bound_for: TopicPartition | None = None
        """of a record that was not delivered; its number is -1 where none had been chosen yet"""
        self.code = code
        self.name = name
        self.retriable = retriable
        self.fatal = fatal
        self.requires_abort = requires_abort


class BrokerUnreachable(ClientError):
    """No broker answered: none listens there, the name does not resolve, or it took too long."""


class TopicNotFound(ClientError):
    """The topic or the partition does not exist."""


class TopicExists(ClientError):
    """A topic of that name exists already."""


class GroupNotFound(ClientError):
    """No such group."""


class OffsetsUnknown(ClientError):
    """Partitions whose leader did not tell their offsets, or that nobody leads."""

    def __init__(
        self, causes: Mapping[TopicPartition, str], known: Mapping[TopicPartition, int], *, code: int, name: str
    ) -> None:
        alike: dict[str, list[TopicPartition]] = {}
        for partition, cause in causes.items():
            alike.setdefault(cause, []).append(partition)
        told = "; ".join(f"{listed(partitions)}: {cause}" for cause, partitions in alike.items())
        super().__init__(f"cannot tell the offsets of {told}", code=code, name=name, retriable=True)
        self.causes = dict(causes)
        self.known = dict(known)
        """what the other partitions' leaders have told"""


class ConfigRefused(ClientError):
    """A configuration property is unknown, or its value is not accepted."""


class SerializationError(ClientError):
    """A key or value could not be turned into bytes; nothing was sent."""


class DeserializationError(ClientError):
    """A record's key or value could not be read. It names the record, so that it can be skipped or set aside."""

    def __init__(self, part: str, topic: str, partition: int, offset: int, data: bytes | None, why: str) -> None:
        super().__init__(
            f"the {part} of {topic}-{partition} at offset {offset} cannot be read: {why}; "
            "the next poll goes on behind it",
            name="DESERIALIZATION",
        )
        self.part = part
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.data = data


_KINDS: dict[int, type[ClientError]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: TopicNotFound,
    LibraryError._UNKNOWN_TOPIC: TopicNotFound,
    LibraryError._UNKNOWN_PARTITION: TopicNotFound,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExists,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupNotFound,
    ErrorCode.INVALID_CONFIG: ConfigRefused,
    LibraryError._INVALID_ARG: ConfigRefused,
    **dict.fromkeys(_UNREACHABLE, BrokerUnreachable),
}


def from_library(error: LibraryError, doing: str) -> ClientError:
    """The typed error for what librdkafka reports while `doing` something ("create the topic 'a'")."""
    code = error.code()
    kind = _KINDS.get(code, ClientError)
    return kind(
        f"cannot {doing}: {error.str()}",
        code=code,
        name=error.name(),
        retriable=error.retriable() or is_retriable(code),
        fatal=error.fatal(),
        requires_abort=error.txn_requires_abort(),
    )


def from_exception(exc: KafkaException, doing: str) -> ClientError:
    cause = exc.args[0] if exc.args else None
    if isinstance(cause, LibraryError):
        return from_library(cause, doing)
    return ClientError(f"cannot {doing}: {exc}")


def listed(items: Sequence[object]) -> str:
    """As many as a person reads, and how many more there are."""
    more = len(items) - LISTED_MAX
    return ", ".join(map(str, items[:LISTED_MAX])) + (f" and {more} more" if more > 0 else "")


def is_retriable(code: int) -> bool:
    return code in _LOCAL_RETRIABLE or code in RETRIABLE
