"""What Kafka calls the files of a partition's directory."""

from __future__ import annotations

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SUMS = ".sums"
SNAPSHOT = ".snapshot"

SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX, SUMS)
"""The files of one segment. Removed and renamed in this order: what is left beside no log is an orphan."""

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"

EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

_DIGITS = 20
_DIRECTORY_NAME_MAX = 255


def segment_file(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The offset in a file's name, or None where it does not start with one."""
    digits = name[:_DIGITS]
    return int(digits) if len(digits) == _DIGITS and digits.isascii() and digits.isdigit() else None


def is_file(name: str, suffix: str) -> bool:
    """Whether it is exactly `<20 digits><suffix>`."""
    return len(name) == _DIGITS + len(suffix) and name.endswith(suffix) and offset_of(name) is not None


def deleted_directory(name: str, hex_id: str) -> str:
    """What `<topic>-<partition>` is renamed to before its removal: `<topic>-<partition>.<32 hex digits>-delete`."""
    suffix = f".{hex_id}-delete"
    return name[: _DIRECTORY_NAME_MAX - len(suffix)] + suffix
