"""A broker's life on a loop: started, told, stopped when it is asked to, also while it still waits for a majority."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.broker.broker import Broker


async def serve(broker: Broker, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """`ready` is told the address once clients can connect; never where `stop` comes first."""
    starting = asyncio.ensure_future(broker.start())
    asked = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, asked), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        await _give_up()
        return
    try:
        starting.result()
    except BaseException:
        await _give_up()
        raise
    ready(broker.address)
    await asked
    await broker.stop()


async def _give_up() -> None:
    """Nothing was promised to anybody: as after a crash, the next start finds what is on the disk."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
