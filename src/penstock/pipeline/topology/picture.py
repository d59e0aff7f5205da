"""How a pipeline looks: for `penstock pipeline dry-run`, as text, as a Mermaid graph, as data.

`stages` is what execution makes of the definition: the stage of each keyed node, from 1 on. Rows are shuffled by key
on their way into a stage, and stay where they are within it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.pipeline.topology.flow import Flow
from penstock.pipeline.topology.nodes import Keyed, Node, Sink, Source


@dataclass(frozen=True, slots=True)
class Drawn:
    """A node of the picture."""

    id: int
    name: str
    kind: str
    where: str
    stage: int
    """0: before the first shuffle; a node without state is where its rows are."""
    parents: list[int]


def drawn(flow: Flow, stages: Mapping[int, int]) -> list[Drawn]:
    reached = _reached(flow, stages)
    return [
        Drawn(node.id, _title(node), node.kind, node.where, reached[node.id], [parent.id for parent, _ in node.parents])
        for node in flow.nodes
    ]


def as_text(flow: Flow, stages: Mapping[int, int]) -> str:
    """A line for each node, below what it reads; what was drawn already is only named. Then the stages."""
    shuffles = _shuffles(flow.levels, max(stages.values(), default=0))
    lines = [f"pipeline {flow.name}: {len(flow.sources)} sources, {len(flow.sinks)} sinks, {shuffles}"]
    shown: set[int] = set()
    reached = _reached(flow, stages)
    for source in flow.sources:
        _draw(source, None, "", lines, shown, reached)
    for stage in sorted(set(stages.values())):
        inside = [_title(node) for node in flow.nodes if stages.get(node.id) == stage]
        lines.append(f"stage {stage}: {', '.join(inside)}")
    return "\n".join(lines)


def as_mermaid(flow: Flow, stages: Mapping[int, int]) -> str:
    """For a page that draws Mermaid graphs."""
    lines = ["flowchart LR"]
    for node in flow.nodes:
        left, right = _SHAPES.get(node.kind, ("[", "]") if not isinstance(node, Keyed) else ("[(", ")]"))
        lines.append(f'  n{node.id}{left}"{_title(node)}"{right}')
    reached = _reached(flow, stages)
    for node in flow.nodes:
        for parent, _ in node.parents:
            arrow = "==>" if reached[parent.id] < reached[node.id] else "-->"
            lines.append(f"  n{parent.id} {arrow} n{node.id}")
    return "\n".join(lines)


_SHAPES = {"source": ("([", "])"), "sink": ("([", "])")}


def _reached(flow: Flow, stages: Mapping[int, int]) -> dict[int, int]:
    """The stage that each node's rows are in; the nodes come parents first."""
    reached: dict[int, int] = {}
    for node in flow.nodes:
        above = max((reached[parent.id] for parent, _ in node.parents), default=0)
        reached[node.id] = stages.get(node.id, above)
    return reached


def _draw(
    node: Node, parent: Node | None, indent: str, lines: list[str], shown: set[int], reached: Mapping[int, int]
) -> None:
    again = node.id in shown
    shown.add(node.id)
    arrow = "" if parent is None else "=> " if reached[parent.id] < reached[node.id] else "-> "
    lines.append(f"{indent}{arrow}{_title(node)}{' (see above)' if again else f'   [{node.where}]'}")
    if not again:
        for child, _ in node.children:
            _draw(child, node, indent + "   ", lines, shown, reached)


def _title(node: Node) -> str:
    if isinstance(node, Source):
        what = "table" if node.is_table else "stream"
        return f"{what} of {' '.join(node.topics) or node.pattern}"
    if isinstance(node, Sink):
        topic = node.topic if isinstance(node.topic, str) else "topics by row"
        return f"to {topic}{' (compacted)' if node.compacted else ''}"
    return node.kind if node.name in (node.kind, f"{node.kind}-{node.id}") else f"{node.kind} {node.name}"


def _shuffles(levels: int, stages: int) -> str:
    """A run over a range goes level by level, one keyed node after the other."""
    if not stages:
        return "no state"
    live = f"{stages} stateful stage{'s' if stages > 1 else ''}"
    return live if levels == stages else f"{live} ({levels} over a range)"
