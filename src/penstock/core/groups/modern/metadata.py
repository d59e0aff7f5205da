"""The cluster's topics as the group coordinator sees them.

One `Metadata` serves every shard of a broker. The shell has it follow the metadata log; a group compares `version` with
the one it last looked at, so that no change of a topic has to find its groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from penstock.core.metadata.image import EMPTY, Image, Topic

NO_TOPICS_HASH = 0


class Metadata:
    __slots__ = ("image", "version")

    def __init__(self, image: Image = EMPTY) -> None:
        self.image = image
        self.version = 1
        """grows when a topic appears, disappears or gets partitions; not when only its replicas change"""

    def follow(self, image: Image, changed_ids: Iterable[bytes]) -> None:
        """The metadata log moved on; these topics may have changed, some of them to be gone."""
        before = self.image.topics_by_id
        after = image.topics_by_id
        self.image = image
        if any(_shape(before.get(topic_id)) != _shape(after.get(topic_id)) for topic_id in changed_ids):
            self.version += 1

    def partition_count(self, topic: str) -> int:
        """0 where there is no such topic."""
        found = self.image.topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def topic_id(self, topic: str) -> bytes | None:
        found = self.image.topics.get(topic)
        return None if found is None else found.id

    def hash(self, topics: Iterable[str]) -> int:
        """A number that changes when one of these topics is made, deleted, made again or grows; 0 where there is none
        of them. Stored with a group as its metadata hash: another number only costs one more assignment."""
        digest = blake2b(digest_size=8)
        found_any = False
        for name in sorted(topics):
            found = self.image.topics.get(name)
            if found is not None:
                found_any = True
                digest.update(found.id + len(found.partitions).to_bytes(4, "big"))
        return int.from_bytes(digest.digest(), "big", signed=True) if found_any else NO_TOPICS_HASH


def _shape(topic: Topic | None) -> int:
    return -1 if topic is None else len(topic.partitions)
