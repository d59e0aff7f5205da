"""The sockets of an address: taken first, so that the port is known, and served once somebody is ready."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from penstock.broker.config import ConfigFault
from penstock.broker.config import Listener as Address

_BACKLOG = 512


class BoundSockets:
    def __init__(self, address: Address) -> None:
        self._sockets = _bind(address)
        self.port: int = self._sockets[0].getsockname()[1]
        self._servers: list[asyncio.Server] = []

    async def serve(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        loop = asyncio.get_running_loop()
        for bound in self._sockets:
            self._servers.append(await loop.create_server(factory, sock=bound, backlog=_BACKLOG))

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for bound in self._sockets[len(self._servers) :]:
            bound.close()


def _bind(address: Address) -> list[socket.socket]:
    """The sockets of an address: both loopbacks for `localhost`, as clients may try either first; one that takes IPv4
    and IPv6 for "every address", where the machine has both."""
    host, port = address.host, address.port
    try:
        if host == "localhost":
            first = _listening("127.0.0.1", port, socket.AF_INET)
            return [first, *_other_loopback(first.getsockname()[1])]
        if not host and socket.has_dualstack_ipv6():
            return [_listening("", port, socket.AF_INET6, dualstack=True)]
        return [_listening(host, port, socket.AF_INET6 if ":" in host else socket.AF_INET)]
    except OSError as fault:
        raise ConfigFault(
            f"listeners: {address.name}://{address.host}:{port} cannot be bound: {fault.strerror or fault}. "
            "Is another broker running? Choose another port, or 0 for a free one."
        ) from None


def _other_loopback(port: int) -> list[socket.socket]:
    try:
        return [_listening("::1", port, socket.AF_INET6)]
    except OSError:
        return []


def _listening(host: str, port: int, family: socket.AddressFamily, *, dualstack: bool = False) -> socket.socket:
    bound = socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=dualstack)
    bound.setblocking(False)
    return bound
