"""Who may commit offsets of a streams group."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.groups.modern import offsets
from penstock.core.groups.streams.group import StreamsGroup, StreamsMember


def check_commit(
    group: StreamsGroup,
    member_id: str,
    epoch: int,
    partitions: Iterable[tuple[str, int]],
    api_version: int,
    *,
    transactional: bool = False,
) -> None:
    def had_since(member: StreamsMember) -> bool:
        return _had_since(group, member, epoch, partitions)

    offsets.check_commit(group.members, member_id, epoch, had_since, api_version, transactional=transactional)


def _had_since(group: StreamsGroup, member: StreamsMember, epoch: int, partitions: Iterable[tuple[str, int]]) -> bool:
    """Whether the tasks that read these were active with the member in that epoch already. What it has yet to give up
    is still its own: it commits before it lets go."""
    for topic, partition in partitions:
        reader = None if group.topology is None else group.topology.reader_of(topic)
        given = None if reader is None else member.since.get((reader, partition))
        if given is None or given > epoch:
            return False
    return True
