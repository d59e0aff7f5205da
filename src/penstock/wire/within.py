"""Connections within one machine."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Protocol

from penstock.base.limits import ARRIVAL_BYTES_MAX, RECEIVE_BUFFER_BYTES

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

    def setsockopt(self, level: int, name: int, value: int | bytes, /) -> None: ...


def is_within(connected: Connected | None) -> bool:
    """Whether both ends are on this machine. None: nothing is known of the socket, as in a simulation."""
    if connected is None or connected.family not in _FAMILIES:
        return False
    with suppress(OSError):  # gone already
        return connected.getsockname()[0] == connected.getpeername()[0]
    return False


class Arrival:
    """Of a large frame nothing is read until the rest of it is there, or a good part (SO_RCVLOWAT): between two ends of
    one machine it comes in pieces of 64 KiB, and each of them would be a turn of the loop and a call."""

    __slots__ = ("_connected", "_least_bytes")

    def __init__(self, connected: Connected) -> None:
        self._connected = connected
        self._least_bytes = 1

    def missing(self, rest_bytes: int) -> None:
        """So much of the frame that is being received has not come yet; 0 where there is none."""
        least = min(rest_bytes, ARRIVAL_BYTES_MAX) if rest_bytes > RECEIVE_BUFFER_BYTES else 1
        if least != self._least_bytes:
            self._least_bytes = least
            with suppress(OSError):  # gone already: the loop will tell
                self._connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)


def arrival(connected: Connected | None) -> Arrival | None:
    """None where pieces are to be read as they come: from another machine, which may take long over them."""
    return Arrival(connected) if connected is not None and is_within(connected) else None


def unpace(connected: Connected | None) -> None:
    """Have what is sent leave at once where both ends are on this machine: nothing lies between them that could be
    congested. Where the system's own choice paces (BBR), it costs such connections half of their rate and as much
    processor time again."""
    if _TCP_CONGESTION is None or connected is None or not is_within(connected):
        return
    with suppress(OSError):  # gone already, or a system that does not allow it: then it goes as it did
        connected.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, _UNPACED)
