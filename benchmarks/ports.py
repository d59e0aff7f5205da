"""A port that was free a moment ago."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import count

PORTS = 10_000, 20_000
"""Below those that connections are given, and those that `penstock up --port 0` draws: either could be in the way by
the time that a server starts."""
_SHARE = 200
"""Each process that asks has so many of its own, so that two of them do not find the same one."""
_turn = count()


def free_port() -> int:
    """One that is free together with the next, which the broker's controller takes. The same one comes again only when
    all others of this process have had their turn."""
    first = PORTS[0] + os.getpid() * _SHARE % (PORTS[1] - PORTS[0])
    for _ in range(0, _SHARE, 2):
        port = first + 2 * next(_turn) % _SHARE
        with socket.socket() as probe, socket.socket() as above, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            above.bind(("127.0.0.1", port + 1))
            return port
    raise OSError(f"no two ports are free side by side among {first} to {first + _SHARE}")
