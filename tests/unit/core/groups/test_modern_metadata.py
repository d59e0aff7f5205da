"""What the group coordinator notices of topics."""

from __future__ import annotations

from penstock.base.configs.define import ResourceType
from penstock.core.groups.modern.metadata import Metadata
from penstock.core.groups.modern.settings import Bounded, number
from penstock.core.metadata.image import Image, Partition, Topic


def image_of(**counts: int) -> Image:
    topics = {
        name: Topic(name, name.encode().ljust(16), {at: Partition((1,), (1,), 1, 0, 0) for at in range(partitions)})
        for name, partitions in counts.items()
    }
    return Image(topics=topics, topics_by_id={topic.id: topic for topic in topics.values()})


def ids(image: Image) -> list[bytes]:
    return list(image.topics_by_id)


def test_the_version_grows_with_topics_and_their_partitions_alone() -> None:
    metadata = Metadata()
    first = image_of(a=1)
    metadata.follow(first, ids(first))
    version = metadata.version
    metadata.follow(image_of(a=1), ids(first))
    assert metadata.version == version
    metadata.follow(image_of(a=2), ids(first))
    assert metadata.version == version + 1
    metadata.follow(image_of(), ids(first))
    assert metadata.version == version + 2


def test_the_hash_tells_what_an_assignment_depends_on() -> None:
    small, grown = Metadata(image_of(a=1, b=1)), Metadata(image_of(a=1, b=2))
    assert small.hash(["a", "b"]) == small.hash(["b", "a"]) != grown.hash(["a", "b"])
    assert small.hash(["a"]) == grown.hash(["a"])
    assert small.hash(["a", "not there"]) == small.hash(["a"])
    assert small.hash(["not there"]) == small.hash([]) == 0


def test_a_groups_number_is_bounded_by_the_broker() -> None:
    setting = Bounded("consumer.session.timeout.ms", default=45_000, low=30_000, high=60_000)
    configs = {(ResourceType.GROUP, "low"): {setting.name: "10"}, (ResourceType.GROUP, "fits"): {setting.name: "50000"}}
    image = Image(configs=configs)
    assert [number(image, name, setting) for name in ("low", "fits", "none")] == [30_000, 50_000, 45_000]
