"""A member on its way from one assignment to the next, and whether a request still speaks for it."""

from __future__ import annotations

from enum import IntEnum

from penstock.base.errors import ErrorCode, KafkaError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
"""a static member is away for a while: its place is kept"""


class MemberState(IntEnum):
    """The numbers are those of the stored records."""

    STABLE = 0
    """has what it is to have, as far as was computed"""
    UNREVOKED_PARTITIONS = 1
    """has yet to give up partitions"""
    UNRELEASED_PARTITIONS = 2
    """has given up what it had to; some of what it is to get is still with others"""
    UNKNOWN = 127
    """written by a broker that knows more states than this one"""

    @classmethod
    def of(cls, number: int) -> MemberState:
        return cls(number) if number in _NUMBERS else cls.UNKNOWN


_NUMBERS = frozenset(int(state) for state in MemberState)


def check_epoch(received: int, current: int, previous: int, *, owns_only_assigned: bool) -> None:
    """FENCED_MEMBER_EPOCH where the member lives in another epoch than the coordinator knows. The one before is taken
    from a member that may have missed the answer, as long as it owns nothing beyond what it was given."""
    if received == current or (received == previous and received < current and owns_only_assigned):
        return
    relation = "greater" if received > current else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The group member has a {relation} member epoch ({received}) than the one known by the group coordinator "
        f"({current}). The member must abandon all its partitions and rejoin.",
    )
