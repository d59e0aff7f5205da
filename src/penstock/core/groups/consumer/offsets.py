"""Who may commit and fetch offsets of a consumer group."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.modern.metadata import Metadata

MEMBER_EPOCHS_FROM = 9
"""version of OffsetCommit from which members of the consumer protocol can be told that their epoch is stale"""


def check_commit(
    group: ConsumerGroup,
    metadata: Metadata,
    member_id: str,
    epoch: int,
    partitions: Iterable[tuple[str, int]],
    api_version: int,
    *,
    transactional: bool = False,
) -> None:
    """Without an epoch only where nobody is in the group; old transactional producers send none at all. A member that
    has moved on meanwhile may still commit for what it had in the epoch it speaks of, and has had since (KIP-1251)."""
    if epoch < 0 and (not group.members or (transactional and not member_id)):
        return
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    in_generations = member.uses_classic_protocol
    if not transactional and not in_generations and api_version < MEMBER_EPOCHS_FROM:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch > member.epoch or (epoch < member.epoch and not _had_since(member, metadata, epoch, partitions)):
        said = ErrorCode.ILLEGAL_GENERATION if transactional or in_generations else ErrorCode.STALE_MEMBER_EPOCH
        raise KafkaError(said)


def _had_since(member: ConsumerMember, metadata: Metadata, epoch: int, partitions: Iterable[tuple[str, int]]) -> bool:
    """What it has yet to give up is still its own: a consumer commits before it lets go."""
    for topic, partition in partitions:
        topic_id = metadata.topic_id(topic) or b""
        given = member.assigned.get(topic_id, {}).get(partition)
        if given is None:
            given = member.revoking.get(topic_id, {}).get(partition)
        if given is None or given > epoch:
            return False
    return True


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Who does not say who it is may read: an operator, a client that assigns partitions itself."""
    if member_id is None and epoch < 0:
        return
    member = group.members.get(member_id or "")
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if epoch != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH)
