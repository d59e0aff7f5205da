"""What a member says of records that it has: read, and checked against its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.sharing.states import AcknowledgeType


class Acknowledgement(NamedTuple):
    """One range of offsets; one type for all of it, or one for each offset."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def parts(self, start: int) -> Iterator[tuple[int, int, AcknowledgeType]]:
        """(first, last, type) of each stretch of one type, from `start` on: what is before is done already."""
        first = max(self.first_offset, start)
        if len(self.types) == 1:
            if first <= self.last_offset:
                yield first, self.last_offset, AcknowledgeType(self.types[0])
            return
        base = self.first_offset
        while first <= self.last_offset:
            kind, last = self.types[first - base], first
            while last < self.last_offset and self.types[last + 1 - base] == kind:
                last += 1
            yield first, last, AcknowledgeType(kind)
            first = last + 1


def check(acknowledgements: Sequence[Acknowledgement], *, renewing: bool) -> None:
    """KafkaError INVALID_REQUEST where the batches of one partition are no sense in themselves. `renewing`: the
    request says that it renews locks; no other may."""
    highest = AcknowledgeType.RENEW if renewing else AcknowledgeType.REJECT
    before = -1
    for first, last, types in acknowledgements:
        if first > last or first <= before:
            raise _bad(f"the batch of offsets {first} to {last} is out of order")
        before = last
        if not types:
            raise _bad(f"the batch of offsets {first} to {last} has no acknowledge type")
        if len(types) > 1 and len(types) != last - first + 1:
            raise _bad(f"{len(types)} acknowledge types for the offsets {first} to {last}")
        if any(not 0 <= kind <= highest for kind in types):
            raise _bad(f"an acknowledge type of the offsets {first} to {last} is unknown, or not allowed here")


def _bad(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
