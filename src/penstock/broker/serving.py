"""A broker's life on a loop: started, told, stopped when it is asked to, also while it still waits for a majority."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.base.errors import KafkaError
from penstock.broker.broker import Broker


async def serve(broker: Broker, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    """`ready` is told the address once clients can connect; never where `stop` comes first. KafkaError where the
    metadata log fails for good: then the broker is not stopped in order, it is gone."""
    starting = asyncio.ensure_future(broker.start())
    asked = asyncio.ensure_future(stop.wait())
    lost = asyncio.ensure_future(broker.lost())
    await asyncio.wait((starting, asked, lost), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        await _give_up(broker, lost)
        return
    try:
        starting.result()
    except BaseException:
        await _give_up(broker, lost)
        raise
    ready(broker.address)
    await asyncio.wait((asked, lost), return_when=asyncio.FIRST_COMPLETED)
    if lost.done():
        await _give_up(broker, lost)
    else:
        lost.cancel()
        await broker.stop()


async def _give_up(broker: Broker, lost: asyncio.Future[KafkaError]) -> None:
    """As after a crash, the next start finds what is on the disk."""
    fault = lost.result() if lost.done() else None
    await broker.abandon()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    if fault is not None:
        raise fault
