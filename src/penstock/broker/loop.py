"""The event loop: uvloop where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_fast_loop: Callable[[], asyncio.AbstractEventLoop] | None
try:
    import uvloop

    _fast_loop = uvloop.new_event_loop
except ImportError:  # a platform without it: asyncio's own loop serves, somewhat slower on small frames
    _fast_loop = None


def new_loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop() if _fast_loop is None else _fast_loop()
