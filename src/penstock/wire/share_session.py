"""Our side of a share session with one broker (KIP-932): which partitions it knows that we fetch, and what we say of
records that we have from it.

Epoch 0 begins a session and may say nothing of records; each request has the next number; -1 ends it. A session lives
as long as its connection: what we had is given to others when that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from penstock.protocol.generated.share_acknowledge_request import (
    AcknowledgementBatch as Told,
)
from penstock.protocol.generated.share_acknowledge_request import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from penstock.protocol.generated.share_fetch_request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)

FIRST_EPOCH = 0
LAST_EPOCH = -1
EPOCH_MAX = 2**31 - 1

Place = tuple[bytes, int]
"""A topic's id and a partition."""
Types = dict[int, int]
"""offset -> what became of the record there, as `AcknowledgeType` says."""
T = TypeVar("T", AcknowledgementBatch, Told)


class ShareSession:
    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self._named: dict[Place, None] = {}
        """what the broker believes that we fetch."""
        self.epoch = FIRST_EPOCH

    @property
    def is_open(self) -> bool:
        return self.epoch != FIRST_EPOCH

    def fetch(self, wanted: Iterable[Place], said: Mapping[Place, Types]) -> ShareFetchRequest:
        """Names what is new, and what we say of records; forgets what is not wanted any more."""
        places = dict.fromkeys(wanted)
        named = [place for place in places if place not in self._named or place in said]
        named += [place for place in said if place not in places]
        gone = [place for place in {**self._named, **said} if place not in places]
        self._named = places
        return ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self.epoch,
            topics=_topics(named, said),
            forgotten_topics_data=_forgotten(gone),
        )

    def acknowledge(self, said: Mapping[Place, Types], *, ends: bool = False) -> ShareAcknowledgeRequest:
        topics: dict[bytes, AcknowledgeTopic] = {}
        for (topic_id, index), types in said.items():
            topic = topics.setdefault(topic_id, AcknowledgeTopic(topic_id=topic_id, partitions=[]))
            batches = _batches(types, Told)
            topic.partitions.append(AcknowledgePartition(partition_index=index, acknowledgement_batches=batches))
        return ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=LAST_EPOCH if ends else self.epoch,
            topics=list(topics.values()),
        )

    def on_answer(self) -> None:
        """The broker has taken a request of this session."""
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1


def _topics(named: list[Place], said: Mapping[Place, Types]) -> list[FetchTopic]:
    topics: dict[bytes, FetchTopic] = {}
    for place in named:
        topic = topics.setdefault(place[0], FetchTopic(topic_id=place[0], partitions=[]))
        batches = _batches(said.get(place, {}), AcknowledgementBatch)
        topic.partitions.append(FetchPartition(partition_index=place[1], acknowledgement_batches=batches))
    return list(topics.values())


def _forgotten(gone: list[Place]) -> list[ForgottenTopic]:
    topics: dict[bytes, ForgottenTopic] = {}
    for topic_id, index in gone:
        topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id, partitions=[])).partitions.append(index)
    return list(topics.values())


def _batches(types: Types, structure: type[T]) -> list[T]:
    """Neighbours of one type as one range."""
    batches: list[T] = []
    for offset in sorted(types):
        last = batches[-1] if batches else None
        if last is not None and last.last_offset + 1 == offset and last.acknowledge_types == [types[offset]]:
            last.last_offset = offset
        else:
            batches.append(structure(first_offset=offset, last_offset=offset, acknowledge_types=[types[offset]]))
    return batches
