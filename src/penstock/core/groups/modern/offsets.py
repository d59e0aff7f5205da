"""Who may commit and fetch offsets of a group whose members have epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from penstock.base.errors import ErrorCode, KafkaError

MEMBER_EPOCHS_FROM = 9
"""version of OffsetCommit from which members can be told that their epoch is stale"""


class EpochMember(Protocol):
    @property
    def epoch(self) -> int: ...
    @property
    def uses_classic_protocol(self) -> bool: ...


M = TypeVar("M", bound=EpochMember)


def check_commit(
    members: Mapping[str, M],
    member_id: str,
    epoch: int,
    had_since: Callable[[M], bool],
    api_version: int,
    *,
    transactional: bool = False,
) -> None:
    """Without an epoch only where nobody is in the group; old transactional producers send none at all. A member that
    has moved on meanwhile may still commit for what it had in the epoch it speaks of, and has had since (KIP-1251)."""
    if epoch < 0 and (not members or (transactional and not member_id)):
        return
    member = members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    in_generations = member.uses_classic_protocol
    if not transactional and not in_generations and api_version < MEMBER_EPOCHS_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch > member.epoch or (epoch < member.epoch and not had_since(member)):
        said = ErrorCode.ILLEGAL_GENERATION if transactional or in_generations else ErrorCode.STALE_MEMBER_EPOCH
        raise KafkaError(said)


def check_fetch(members: Mapping[str, M], member_id: str | None, epoch: int) -> None:
    """Who does not say who it is may read: an operator, a client that assigns partitions itself."""
    if member_id is None and epoch < 0:
        return
    member = members.get(member_id or "")
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if epoch != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH)
