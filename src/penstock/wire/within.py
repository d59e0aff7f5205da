"""Connections within one machine."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Protocol

_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_TCP_CONGESTION = getattr(socket, "TCP_CONGESTION", None)
"""Linux alone has it"""
_UNPACED = b"reno"
"""which every Linux has, and lets everybody choose"""


class Connected(Protocol):
    """A socket, or what asyncio shows of one."""

    @property
    def family(self) -> int: ...

    def getsockname(self) -> tuple[object, ...]: ...

    def getpeername(self) -> tuple[object, ...]: ...

    def setsockopt(self, level: int, name: int, value: bytes, /) -> None: ...


def unpace(connected: Connected | None) -> None:
    """Have what is sent leave at once where both ends are on this machine: nothing lies between them that could be
    congested. Where the system's own choice paces (BBR), it costs such connections half of their rate and as much
    processor time again. None: nothing is known of the socket, as in a simulation."""
    if _TCP_CONGESTION is None or connected is None or connected.family not in _FAMILIES:
        return
    with suppress(OSError):  # gone already, or a system that does not allow it: then it goes as it did
        if connected.getsockname()[0] == connected.getpeername()[0]:
            connected.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _UNPACED)
