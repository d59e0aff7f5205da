"""A planted bug: where it comes from, what it changes, and how soon the simulator finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Patch(NamedTuple):
    """An attribute of a class or a module that is replaced."""

    owner: Any
    name: str
    body: Any


class Bug(NamedTuple):
    name: str
    source: str
    """where it happened: an issue of Apache Kafka, a design document, an article"""
    what: str
    patches: tuple[Patch, ...]
    fires: tuple[str, ...]
    """the invariants of which at least one finds it"""
    within: int
    """seeds, from the recorded one on, of which at least one finds it"""
    seed: int = 1
    """the recorded one: a run that finds it"""
    nodes: int = 1
    events: int = 4_000
    options: Mapping[str, Any] = {}
    """what its runs have in common, of `Options`: the faults without which it does not show"""
