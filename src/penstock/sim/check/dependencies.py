"""What an operation depends on, as edges between the completed operations on data.

ww: from the writer of a record to that of the next one in the log. wr: from a writer to everyone who read from it.
process: from each operation of a process to its next. realtime: from what had completed to what was invoked after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from penstock.sim.check.facts import Facts, Step
from penstock.sim.check.graph import Edges
from penstock.sim.check.history import DATA, Process


class Dependencies:
    """The edges among some of the steps, by kind; nodes are their places in `steps`."""

    def __init__(self, facts: Facts, steps: list[Step], write_order: bool) -> None:
        self.steps = steps
        self.wr = _wr(facts, steps, [[] for _ in steps])
        self.ww = _ww(facts, steps, [[] for _ in steps]) if write_order else [[] for _ in steps]
        self.process = _process(steps, [[] for _ in steps])
        self.realtime = _realtime(facts, steps, [[] for _ in steps])


def data_steps(facts: Facts) -> list[Step]:
    return [step for step in facts.steps if step.operation.function in DATA]


def timeline(facts: Facts, steps: list[Step], write_order: bool) -> Edges:
    """All edges in one graph, with realtime as a line of moments beside the operations: two edges for each of these,
    however many run at once. Nodes from `len(steps)` on are moments. Who reaches whom is the same as by `_realtime`.
    """
    edges: Edges = [[] for _ in steps]
    _process(steps, _wr(facts, steps, edges))
    if write_order:
        _ww(facts, steps, edges)
    now = len(edges)
    edges.append([])
    ended = False
    for _, is_invocation, node in _moments(facts, steps):
        if not is_invocation:
            if steps[node].operation.type != "info":
                edges[node].append(now + 1)
                ended = True
            continue
        if ended:
            edges[now].append(now + 1)
            edges.append([])
            now += 1
            ended = False
        edges[now].append(node)
    if ended:
        edges.append([])
    return edges


def _nodes(steps: list[Step]) -> dict[int, int]:
    """Number of a completed operation: its node."""
    return {step.operation.number: node for node, step in enumerate(steps)}


def _wr(facts: Facts, steps: list[Step], edges: Edges) -> Edges:
    node_of = _nodes(steps)
    for reader, step in enumerate(steps):
        written: dict[int, None] = {}
        for key, records in step.reads:
            writer = facts.writer.get(key, {})
            written.update([(writer[value].number, None) for _, value in records if value in writer])
        for number in written:
            node = node_of.get(number, reader)
            if node != reader:
                edges[node].append(reader)
    return edges


def _ww(facts: Facts, steps: list[Step], edges: Edges) -> Edges:
    node_of = _nodes(steps)
    for key, log in facts.logs.items():
        writers = facts.writer.get(key, {})
        known = [node_of.get(writers[value].number, -1) for value in log.values if value in writers]
        for before, after in pairwise(known):
            if before != after and before >= 0 and after >= 0:
                edges[before].append(after)
    return edges


def _process(steps: list[Step], edges: Edges) -> Edges:
    latest: dict[Process, int] = {}
    for node, step in enumerate(steps):
        if step.operation.process in latest:
            edges[latest[step.operation.process]].append(node)
        latest[step.operation.process] = node
    return edges


def _realtime(facts: Facts, steps: list[Step], edges: Edges) -> Edges:
    """From the frontier alone: an operation leaves it when one that was invoked after it has completed; whoever is
    invoked later is reached through that one.
    """
    frontier: dict[int, None] = {}
    before: dict[int, list[int]] = {}
    for _, is_invocation, node in _moments(facts, steps):
        if is_invocation:
            before[node] = list(frontier)
            for earlier in before[node]:
                edges[earlier].append(node)
        elif steps[node].operation.type != "info":
            # What has an unknown outcome may take effect at any time: nothing comes after it.
            for earlier in before[node]:
                frontier.pop(earlier, None)
            frontier[node] = None
    return edges


def _moments(facts: Facts, steps: list[Step]) -> Iterator[tuple[int, bool, int]]:
    """(place in the history, whether it is an invocation, node), in order; an operation left open never completes."""
    moments = []
    for node, step in enumerate(steps):
        completed, invoked = step.operation.number, facts.invoked[step.operation.number].number
        moments.append((invoked, True, node))
        if completed != invoked:
            moments.append((completed, False, node))
    moments.sort()
    return iter(moments)
