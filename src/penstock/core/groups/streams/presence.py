"""What is soft of a streams group: gone with its coordinator, found anew by the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from penstock.core.groups.streams.layout import Layout
    from penstock.core.groups.streams.topology import Topology


class Survey(NamedTuple):
    """A topology laid over the topics as they were in one version of the metadata."""

    version: int
    topology: Topology
    layout: Layout
    metadata_hash: int


@dataclass(slots=True)
class Presence:
    shutdown_by: str | None = None
    """a member that wants the whole application to stop; until nobody is left"""
    endpoint_epoch: int = 0
    """grows when it changed what can be asked of whom"""
    survey: Survey | None = None
    """the last one"""
