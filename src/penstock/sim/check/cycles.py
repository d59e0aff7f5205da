"""Cycles of who saw whose writes: an information flow that no order of the operations explains.

G0 is a cycle of ww edges alone, G1c one of ww and wr edges with a wr edge in it; `-process` and `-realtime` say which
further edges it needs. Almost every history has none: that is found in one pass, and only what remains is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.sim.check.anomalies import Anomaly
from penstock.sim.check.dependencies import Dependencies, data_steps, timeline
from penstock.sim.check.facts import Facts
from penstock.sim.check.graph import Edges, components, has_cycle, short_cycle

SUFFIXES = ("", "-process", "-realtime")


def cycles(facts: Facts, write_order: bool) -> Iterator[Anomaly]:
    steps = data_steps(facts)
    edges = timeline(facts, steps, write_order)
    if not has_cycle(edges):
        return
    suspects = sorted(node for component in components(edges) for node in component if node < len(steps))
    graph = Dependencies(facts, [steps[node] for node in suspects], write_order)
    extras: list[list[Edges]] = [[], [graph.process], [graph.process, graph.realtime]]
    if write_order:
        yield from _named("G0", graph, [graph.ww], graph.ww, extras)
    yield from _named("G1c", graph, [graph.wr, graph.ww], graph.wr, extras)


def _named(
    name: str, graph: Dependencies, kinds: list[Edges], through: Edges, extras: list[list[Edges]]
) -> Iterator[Anomaly]:
    """From the fewest edges to the most; a component that holds a cycle already named is not named again."""
    named: set[int] = set()
    for suffix, more in zip(SUFFIXES, extras, strict=True):
        successors = _successors([*kinds, *more])
        for component in components([successors(node) for node in range(len(graph.steps))]):
            if named.intersection(component):
                continue
            cycle = short_cycle(component, successors, through.__getitem__)
            if cycle is not None:
                named.update(component)
                operations = tuple(graph.steps[node].operation for node in cycle)
                yield Anomaly(name + suffix, _told(graph, cycle), operations)


def _successors(kinds: Iterable[Edges]) -> Callable[[int], list[int]]:
    return lambda node: [after for edges in kinds for after in edges[node]]


def _told(graph: Dependencies, cycle: list[int]) -> str:
    numbers = [graph.steps[node].operation.number for node in cycle]
    steps = zip(numbers, cycle, [*cycle[1:], cycle[0]], strict=True)
    return " ".join(f"{number} {_kind(graph, node, after)}" for number, node, after in steps) + f" {numbers[0]}"


def _kind(graph: Dependencies, node: int, after: int) -> str:
    if after in graph.wr[node]:
        return "was read by"
    if after in graph.ww[node]:
        return "stands in the log before"
    return "had ended before" if after in graph.realtime[node] else "was followed in its process by"
