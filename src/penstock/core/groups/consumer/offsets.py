"""Who may commit offsets of a consumer group."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.groups.consumer.group import ConsumerGroup
from penstock.core.groups.consumer.member import ConsumerMember
from penstock.core.groups.modern import offsets
from penstock.core.groups.modern.metadata import Metadata


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
    def had_since(member: ConsumerMember) -> bool:
        return _had_since(member, metadata, epoch, partitions)

    offsets.check_commit(group.members, member_id, epoch, had_since, api_version, transactional=transactional)


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
