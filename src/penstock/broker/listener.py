"""A listener: its address is bound first, so that the port is known, and its door opens once the broker is ready."""

from __future__ import annotations

import asyncio

from penstock.broker.config import Listener as Address
from penstock.broker.network.door import Door
from penstock.broker.world import World


class Listener:
    def __init__(self, address: Address, world: World) -> None:
        self.address = address
        self._bound = world.bind(address)
        self.port = self._bound.port
        self.door: Door | None = None

    async def serve(self, door: Door) -> None:
        self.door = door
        await self._bound.serve(door)
        door.open()

    async def close(self) -> None:
        """No new connections, then none at all."""
        self._bound.close()
        if self.door is not None:
            self.door.shut()
        await asyncio.sleep(0)
