"""One broker in the foreground of this process, until it is asked to stop."""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
from collections.abc import Callable

from penstock.broker.broker import Broker
from penstock.broker.config import BrokerConfig
from penstock.broker.journal import write_to_stderr
from penstock.broker.loop import new_loop
from penstock.broker.serving import serve


def run(config: BrokerConfig, ready: Callable[[str], None]) -> None:
    """Until SIGTERM or SIGINT; KeyboardInterrupt where SIGINT came before it was `ready`."""
    if not __debug__:
        raise SystemExit("penstock: assertions guard the data; run Python without -O")
    write_to_stderr()
    allow_open_files()
    loop = new_loop()
    try:
        loop.run_until_complete(_serve(config, ready))
    finally:
        loop.close()


def allow_open_files() -> None:
    """As many as the system lets us have: every partition in use holds a file, every client a socket."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _serve(config: BrokerConfig, ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    asked: list[signal.Signals] = []
    was_ready = False

    def ask(number: signal.Signals) -> None:
        asked.append(number)
        stop.set()

    def started(address: str) -> None:
        nonlocal was_ready
        was_ready = True
        # All that is there now stays for good: it need not be looked at again.
        gc.freeze()
        gc.enable()
        ready(address)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number)
    await serve(Broker(config), stop, started)
    if not was_ready and asked[0] == signal.SIGINT:
        raise KeyboardInterrupt
