"""What a record of a share-partition can be, and what a member can say of it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class RecordState(IntEnum):
    """As the share coordinator keeps them."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    GAP = 0
    """there is no record at this offset"""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Acquired(NamedTuple):
    """Records that were handed to a member together."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def records(self) -> int:
        return self.last_offset - self.first_offset + 1
