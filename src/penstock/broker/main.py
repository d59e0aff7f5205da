"""One broker in the foreground: `penstock broker --config server.properties`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
from collections.abc import Callable, Mapping

from penstock.broker.broker import Broker
from penstock.broker.config import BrokerConfig
from penstock.broker.journal import write_to_stderr
from penstock.broker.loop import new_loop
from penstock.broker.properties import from_environment, parse_properties
from penstock.broker.serving import serve


def load(path: str, environment: Mapping[str, str] | None = None) -> BrokerConfig:
    """A configuration file, overridden by the environment."""
    with open(path, encoding="utf-8") as file:
        values = parse_properties(file.read())
    values.update(from_environment(os.environ if environment is None else environment))
    return BrokerConfig(values)


def run(config: BrokerConfig, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. `ready` is called with the address once clients can connect."""
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
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError):
            loop.add_signal_handler(number, stop.set)

    def started(address: str) -> None:
        # All that is there now stays for good: it need not be looked at again.
        gc.freeze()
        gc.enable()
        ready(address)

    await serve(Broker(config), stop, started)
