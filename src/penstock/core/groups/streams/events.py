"""What a timer of streams groups alone says."""

from __future__ import annotations

from typing import NamedTuple


class InitialDelayOver(NamedTuple):
    """A group has waited long enough for more members than its first."""

    group_id: str


def delay_key(group_id: str) -> tuple[str, str]:
    return ("streams-initial-delay", group_id)
