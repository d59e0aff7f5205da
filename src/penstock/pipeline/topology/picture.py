"""How a pipeline looks: for `penstock pipeline dry-run`, as text, as a Mermaid graph, as data."""

from __future__ import annotations

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
    level: int
    """0: no state before it; a shuffle by key leads to each higher one."""
    parents: list[int]


def drawn(flow: Flow) -> list[Drawn]:
    nodes = []
    reached: dict[int, int] = {}
    for node in flow.nodes:
        above = max((reached[parent.id] for parent, _ in node.parents), default=0)
        reached[node.id] = flow.level_of(node.id) if isinstance(node, Keyed) else above
        parents = [parent.id for parent, _ in node.parents]
        nodes.append(Drawn(node.id, _title(node), node.kind, node.where, reached[node.id], parents))
    return nodes


def as_text(flow: Flow) -> str:
    """A line for each node, below what it reads; what was drawn already is only named."""
    lines = [f"pipeline {flow.name}: {len(flow.sources)} sources, {len(flow.sinks)} sinks, {_shuffles(flow.levels)}"]
    shown: set[int] = set()
    for source in flow.sources:
        _draw(source, "", lines, shown, flow)
    return "\n".join(lines)


def as_mermaid(flow: Flow) -> str:
    """For a page that draws Mermaid graphs."""
    lines = ["flowchart LR"]
    for node in flow.nodes:
        left, right = _SHAPES.get(node.kind, ("[", "]") if not isinstance(node, Keyed) else ("[(", ")]"))
        lines.append(f'  n{node.id}{left}"{_title(node)}"{right}')
    for node in flow.nodes:
        arrow = "==>" if isinstance(node, Keyed) else "-->"
        lines += [f"  n{parent.id} {arrow} n{node.id}" for parent, _ in node.parents]
    return "\n".join(lines)


_SHAPES = {"source": ("([", "])"), "sink": ("([", "])")}


def _draw(node: Node, indent: str, lines: list[str], shown: set[int], flow: Flow) -> None:
    again = node.id in shown
    shown.add(node.id)
    by_key = "=> " if isinstance(node, Keyed) else "-> " if indent else ""
    lines.append(f"{indent}{by_key}{_title(node)}{' (see above)' if again else f'   [{node.where}]'}")
    if not again:
        for child, _ in node.children:
            _draw(child, indent + "   ", lines, shown, flow)


def _title(node: Node) -> str:
    if isinstance(node, Source):
        what = "table" if node.is_table else "stream"
        return f"{what} of {' '.join(node.topics) or node.pattern}"
    if isinstance(node, Sink):
        topic = node.topic if isinstance(node.topic, str) else "topics by row"
        return f"to {topic}{' (compacted)' if node.compacted else ''}"
    return node.kind if node.name in (node.kind, f"{node.kind}-{node.id}") else f"{node.kind} {node.name}"


def _shuffles(levels: int) -> str:
    return "no state" if not levels else f"{levels} stateful stage{'s' if levels > 1 else ''}"
