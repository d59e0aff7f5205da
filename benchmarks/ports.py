"""A port that was free a moment ago."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

PORTS = 20_000, 32_000
"""below those that connections are given, one of which could be in the way by the time that a broker starts"""


def free_port() -> int:
    """One that is free together with the next, which the broker's controller takes."""
    for port in random.sample(range(*PORTS), 100):
        with socket.socket() as probe, socket.socket() as above, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            above.bind(("127.0.0.1", port + 1))
            return port
    raise OSError(f"no two ports free side by side among {PORTS[0]} to {PORTS[1]}")
