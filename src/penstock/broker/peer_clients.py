"""Connections from this node to another of its cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.base.ports import Clock, Random

if TYPE_CHECKING:
    from penstock.wire.aio import Client


def client_of(host: str, port: int, name: str, clock: Clock, random: Random) -> Client:
    """A client of one node, which it calls by `name`."""
    from penstock.wire.aio import Client  # noqa: PLC0415 a cluster of one never needs it, and starts sooner without

    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Client(address, client_id=name, chance=random.below, wall_ms=clock.wall_ms)
