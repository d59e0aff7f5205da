"""What is soft of a streams group: gone with its coordinator, found anew by the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.core.groups.streams.layout import Layout
    from penstock.core.groups.streams.topology import Topology


@dataclass(slots=True)
class Presence:
    shutdown_by: str | None = None
    """a member that wants the whole application to stop; until nobody is left"""
    endpoint_epoch: int = 0
    """grows when it changed what can be asked of whom"""
    layout: tuple[int, Topology, Layout] | None = None
    """the last one, with the version of the topics and the topology that it was made of"""
