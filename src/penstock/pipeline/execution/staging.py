"""Which keyed nodes can work in one stage: those that are given the keys that another one works on.

A count that becomes a table that is joined with another table by the same key is one stage, not three: its rows stay in
their slot. A windowed table's rows stay too, as its nodes take the slot of the key inside the windowed one. Only kinds
that are known to leave keys alone are gathered; after any other, the rows are shuffled.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.pipeline.topology.joins import LookUp
from penstock.pipeline.topology.nodes import Keyed, Node, Source

_KEEPS_KEY: Final = frozenset(
    (
        *("filter", "filter-not", "map-values", "flat-map-values", "peek", "branch"),
        *("merge", "repartition", "to-stream", "print"),
    )
)
"""Kinds of transforms whose rows have the keys of those that they were given."""
_EMITS_KEY: Final = frozenset(
    (
        *("table", "to-table", "aggregate", "table-aggregate", "suppress"),
        *("stream-join", "table-look-up", "table-join", "foreign-key-join"),
    )
)
"""Kinds of keyed nodes whose rows have the key that their state is kept under."""
_EMITS_WINDOWED: Final = frozenset(["window", "sliding-window", "session-window"])
"""Kinds of keyed nodes whose rows have that key with a window around it."""


class Home(NamedTuple):
    """Where rows are: the stage that they come from, and how their slot follows from their key there."""

    stage: int
    unwrapped: bool
    """By the key inside a windowed one."""


class Staging:
    def __init__(self, nodes: list[Node]) -> None:
        self.stage: dict[int, int] = {}
        """Of each keyed node, from 1 on."""
        self.unwrapped: set[int] = set()
        """Keyed nodes whose windowed keys take the slot of the key inside."""
        self._passed: dict[int, int] = {}
        self._homes: dict[int, Home | None] = {}
        for node in nodes:
            above = max((self._passed[parent.id] for parent, _ in node.parents), default=0)
            self._passed[node.id] = self._settle(node) if isinstance(node, Keyed) else above
            self._homes[node.id] = self._home(node)

    def _settle(self, node: Keyed) -> int:
        """Rows from earlier stages are shuffled in any case; those of the latest may be at home."""
        latest = max((self._passed[parent.id] for parent, _ in node.parents), default=0)
        homes = {self._homes[parent.id] for parent, _ in node.parents if self._passed[parent.id] == latest}
        home = homes.pop() if len(homes) == 1 and _goes_by_row_key(node) else None
        self.stage[node.id] = latest + 1 if home is None else latest
        if home is not None and home.unwrapped:
            self.unwrapped.add(node.id)
        return self.stage[node.id]

    def _home(self, node: Node) -> Home | None:
        if isinstance(node, Source):
            return None
        if isinstance(node, Keyed):
            unwrapped = node.id in self.unwrapped
            if node.kind in _EMITS_KEY and _goes_by_row_key(node):
                return Home(self.stage[node.id], unwrapped)
            if node.kind in _EMITS_WINDOWED and not unwrapped:
                return Home(self.stage[node.id], True)
            return None
        homes = {self._homes[parent.id] for parent, _ in node.parents}
        return homes.pop() if node.kind in _KEEPS_KEY and len(homes) == 1 else None


def _goes_by_row_key(node: Keyed) -> bool:
    if isinstance(node, LookUp):
        return node._key_of is None
    return type(node).key_of is Keyed.key_of
