"""Directed graphs over dense numbers: strongly connected components and short cycles, without recursion."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

Edges = list[list[int]]
"""Successors by node."""
STARTS_MAX = 200
"""Edges of a component from which a short cycle is looked for: one is enough for a verdict, a shorter one reads well"""


def has_cycle(successors: Edges) -> bool:
    """Whether something is left when nodes that nothing leads to are taken away, again and again: quicker than
    `components`, which tells what.
    """
    incoming = [0] * len(successors)
    for edges in successors:
        for after in edges:
            incoming[after] += 1
    free = [node for node, count in enumerate(incoming) if not count]
    while free:
        for after in successors[free.pop()]:
            incoming[after] -= 1
            if not incoming[after]:
                free.append(after)
    return any(incoming)


def components(successors: Edges) -> Iterator[list[int]]:
    """Strongly connected components of two nodes or more (Tarjan's algorithm with a stack of its own)."""
    count = len(successors)
    order = [-1] * count
    low = [0] * count
    on_stack = bytearray(count)
    stack: list[int] = []
    clock = 0
    for root in range(count):
        if order[root] != -1:
            continue
        order[root] = low[root] = clock
        clock += 1
        stack.append(root)
        on_stack[root] = 1
        work = [(root, iter(successors[root]))]
        while work:
            node, rest = work[-1]
            for after in rest:
                if order[after] == -1:
                    order[after] = low[after] = clock
                    clock += 1
                    stack.append(after)
                    on_stack[after] = 1
                    work.append((after, iter(successors[after])))
                    break
                if on_stack[after] and order[after] < low[node]:
                    low[node] = order[after]
            else:
                work.pop()
                if work and low[node] < low[work[-1][0]]:
                    low[work[-1][0]] = low[node]
                if low[node] == order[node]:
                    found = _unwind(stack, on_stack, node)
                    if len(found) > 1:
                        yield found


def _unwind(stack: list[int], on_stack: bytearray, node: int) -> list[int]:
    found = []
    while True:
        top = stack.pop()
        on_stack[top] = 0
        found.append(top)
        if top == node:
            return found


def short_cycle(
    members: Iterable[int], successors: Callable[[int], Iterable[int]], through: Callable[[int], Iterable[int]]
) -> list[int] | None:
    """The shortest cycle found among `members` that has an edge of `through` in it; its first edge is one."""
    inside = set(members)
    best: list[int] | None = None
    starts = [(a, b) for a in sorted(inside) for b in through(a) if b in inside and b != a]
    for start, after in starts[:STARTS_MAX]:
        path = _path(after, start, inside, successors)
        if path is not None and (best is None or len(path) + 1 < len(best)):
            best = [start, *path[:-1]]
    return best


def _path(start: int, end: int, inside: set[int], successors: Callable[[int], Iterable[int]]) -> list[int] | None:
    """The shortest path, both ends included."""
    came_from: dict[int, int] = {start: start}
    queue = deque([start])
    while queue and end not in came_from:
        node = queue.popleft()
        for after in successors(node):
            if after in inside and after not in came_from:
                came_from[after] = node
                queue.append(after)
    if end not in came_from:
        return None
    path = [end]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]
