"""What is asked of a share coordinator, about one partition of one group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from penstock.base.ids import id_text
from penstock.core.share.batches import StateBatch

NO_EPOCH = -1
"""where whoever asks does not know: it is not compared"""
KEPT = -1
"""as a start offset: the one on record stays"""


class ShareKey(NamedTuple):
    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        """By which FindCoordinator knows it."""
        return f"{self.group_id}:{id_text(self.topic_id)}:{self.partition}"


@dataclass(frozen=True, slots=True)
class Initialize:
    key: ShareKey
    state_epoch: int
    start_offset: int
    """-1: the group has not begun, its first leader decides where"""


@dataclass(frozen=True, slots=True)
class Read:
    key: ShareKey
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Write:
    key: ShareKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    """records above the start offset that are done with; -1 where the leader did not count"""
    batches: tuple[StateBatch, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    key: ShareKey


@dataclass(frozen=True, slots=True)
class Summarize:
    key: ShareKey
    leader_epoch: int
