"""Offsets of a stream, as Spark keeps them in its checkpoint: `Positions.to_json` and `Positions.from_json`.

Topics and partitions are written as Spark's Kafka source writes them, {"orders":{"0":23,"1":7}}, so that what reads one
reads the other. What else a batch needs to be the same when it is run again stands beside them under names that no
topic can have:

- "@query": who reads, made when the query is first started; its consumer group is named by it.
- "@from": where this batch begins in partitions of which the batch before says nothing: all of them in the first
  batch, later those found since. A first batch that is run again would otherwise ask anew what "latest" means.
- "@split": minPartitions and maxRecordsPerPartition of that time, as [least tasks, most offsets].
- "@topics": the id of each topic. One that was deleted and created anew has another: its offsets are other records,
  however far they reach by now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.base.ids import TopicPartition
from penstock.pipeline.source.options import Split

QUERY = "@query"
FROM = "@from"
SPLIT = "@split"
TOPICS = "@topics"

Offsets = dict[TopicPartition, int]


class CheckpointError(ValueError):
    """A checkpoint holds offsets that are not ours to read."""


@dataclass(frozen=True, slots=True)
class Positions:
    offsets: Offsets
    query: str = ""
    origin: Offsets = field(default_factory=dict)
    """Where this batch begins in partitions that the batch before did not have."""
    split: Split = field(default_factory=Split)
    topics: dict[str, str] = field(default_factory=dict)
    """Their ids, as far as the cluster gives them any."""

    def to_json(self) -> dict[str, Any]:
        """Equal positions give equal text: Spark compares offsets as text."""
        out: dict[str, Any] = _by_topic(self.offsets)
        if self.query:
            out[QUERY] = self.query
        if self.origin:
            out[FROM] = _by_topic(self.origin)
        if self.split != Split():
            out[SPLIT] = [self.split.least_tasks or 0, self.split.most_offsets or 0]
        if self.topics:
            out[TOPICS] = {name: self.topics[name] for name in sorted(self.topics)}
        return out

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Positions:
        try:
            split = data.get(SPLIT) or [0, 0]
            return cls(
                _by_partition({topic: one for topic, one in data.items() if not topic.startswith("@")}),
                data.get(QUERY, ""),
                _by_partition(data.get(FROM, {})),
                Split(split[0] or None, split[1] or None),
                dict(data.get(TOPICS, {})),
            )
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            raise CheckpointError(
                f"the checkpoint's offsets cannot be read ({error}): {data!r}. Does it belong to another source? "
                "A query that reads something else needs a checkpoint of its own"
            ) from None


def _by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for partition in sorted(offsets):
        out.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return out


def _by_partition(data: Mapping[str, Any]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, offsets in data.items()
        for partition, offset in offsets.items()
    }
