"""What the tasks need to know beside the flow: which node works in which stage, and whose time it goes by."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Final

import msgspec

from penstock.pipeline.execution.packets import Clocks
from penstock.pipeline.execution.slots import slot_of
from penstock.pipeline.execution.staging import Staging
from penstock.pipeline.topology.flow import Flow, PipelineError, Shuffled
from penstock.pipeline.topology.nodes import Keyed, Node, Source

_WINDOWED: Final = msgspec.msgpack.Decoder(tuple[msgspec.Raw, int, int])
"""A packed windowed key: (the key inside, start, end)."""


class Plan:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._staging = Staging(flow.nodes)
        self.stages = max(self._staging.stage.values(), default=0)
        """How many times a stream's rows are shuffled."""
        self._by_topic: dict[str, Source | None] = {topic: one for one in flow.sources for topic in _topics(one)}
        self._keepers = {node.id: _keepers(node) for node in flow.nodes if isinstance(node, Keyed)}
        self._places = {node: _places(flow.nodes[node], keepers) for node, keepers in self._keepers.items()}

    def stage_of(self, node: int) -> int:
        """From 1 on; of a sink: one more than the last."""
        return self._staging.stage.get(node, self.stages + 1)

    def nodes_of(self, stage: int) -> list[int]:
        """The keyed nodes of a stage, parents first."""
        return [node for node in self._keepers if self.stage_of(node) == stage]

    def slot_of(self, row: Shuffled, slots: int) -> int:
        if row.node in self._staging.unwrapped:
            return slot_of(bytes(_WINDOWED.decode(row.key)[0]), slots)
        return slot_of(row.key, slots)

    def source_of(self, topic: str) -> Source:
        source = self._by_topic.get(topic)
        if source is None:
            matching = [one for one in self.flow.sources if one.reads(topic)]
            if len(matching) > 1:
                first, second = matching[:2]
                told = f"the pattern {second.pattern}, at {second.where}, takes it too: its records would come twice"
                raise PipelineError(first.name, first.where, f"the topic {topic}", told)
            source = self._by_topic[topic] = matching[0] if matching else None
        if source is None:
            raise LookupError(
                f"{self.flow.name} was given a record of the topic {topic}, which none of its sources reads"
            )
        return source

    def keeps_time(self, node: int, source: int) -> bool:
        """The rows of that source move the node's time. A table's do so only where there is no stream above it."""
        return source in self._keepers.get(node, ())

    def reached(self, node: int, clocks: Clocks) -> int:
        """A node is where the rows of its sources have come to, at itself or at the keyed nodes above it."""
        return max((clocks[place] for place in self._places[node] if place in clocks), default=0)

    @cached_property
    def digest(self) -> str:
        """Of what a checkpoint's state depends on."""
        depends = repr((self.flow.signature, sorted(self._staging.stage.items()), sorted(self._staging.unwrapped)))
        return hashlib.sha256(depends.encode()).hexdigest()[:16]


def _topics(source: Source) -> list[str]:
    """A frame's records come under a name of their own."""
    return getattr(source, "record_names", source.topics)


def _above(node: Node) -> list[Node]:
    """The node and all its ancestors."""
    found: dict[int, Node] = {}
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.id not in found:
            found[one.id] = one
            waiting += [parent for parent, _ in one.parents]
    return list(found.values())


def _keepers(node: Node) -> frozenset[int]:
    sources = [one for one in _above(node) if isinstance(one, Source) and not one.is_global]
    streams = [one for one in sources if not one.is_table]
    return frozenset(one.id for one in streams or sources)


def _places(node: Node, keepers: frozenset[int]) -> list[tuple[int, int]]:
    return [(one.id, source) for one in _above(node) if isinstance(one, Keyed) for source in sorted(keepers)]
