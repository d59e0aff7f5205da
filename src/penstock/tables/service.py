"""Tables served over HTTP by this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator, Mapping

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.tables.errors import TableError
from penstock.tables.http import application
from penstock.tables.http_answers import Refusal, Served

STOP_S = 5
"""s that requests in work may take after the signal to stop."""
WATCH_S = 0.1
BACKLOG = 1_024
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that listens, and the URL that leads there. OSError where the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except BaseException:
        opened.close()
        raise
    told = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)
    return opened, f"http://{told}:{opened.getsockname()[1]}"


def serve(tables: Mapping[str, Served], listening: socket.socket, ready: Callable[[], None]) -> None:
    """Answers until SIGTERM or SIGINT; `ready` is called once when every table holds its topic. TableError where a
    table can no longer be followed."""
    app = application(tables)
    if is_local(listening.getsockname()[0]):
        app = LocalNamesOnly(app)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=STOP_S,
        server_header=False,
    )
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(_Server(config), tables, listening, ready))


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ours are set by `_serve`: the server's own would end the process by the signal after a clean stop."""
        yield


async def _serve(
    server: _Server, tables: Mapping[str, Served], listening: socket.socket, ready: Callable[[], None]
) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: setattr(server, "should_exit", True))
    serving = loop.create_task(server.serve(sockets=[listening]))
    failure: TableError | None = None
    told = False
    while not serving.done() and failure is None:
        if not told and all(served.table.progress.ready for served in tables.values()):
            told = True
            ready()
        failure = next((one.table.failure for one in tables.values() if one.table.failure is not None), None)
        await asyncio.wait([serving], timeout=WATCH_S)
    server.should_exit = True
    await serving
    if failure is not None:
        raise failure


def is_local(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


class LocalNamesOnly:
    """Where only this machine may ask, a page in its browser may not either: not by a name that it had resolve to
    this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "localhost")
            name = host if host.endswith("]") else host.rsplit(":", 1)[0]
            if name.lower() not in _LOCAL_NAMES:
                refusal = Refusal(403, "wrong_host", f"this server answers for localhost, not for {host!r}")
                await refusal.answer()(scope, receive, send)
                return
        await self._app(scope, receive, send)
