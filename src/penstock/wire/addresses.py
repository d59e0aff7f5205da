"""Addresses as people write them: `host`, `host:port`, `[v6]:port`, several separated by commas.

A listener's protocol in front, as in `PLAINTEXT://host:port`, is left out: what a connection is like is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_PORT = 9092


def parse(bootstrap: str | Sequence[str]) -> list[tuple[str, int]]:
    """ValueError where an address has no host or its port is no number."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    return [_parse_one(text.strip()) for text in texts if text.strip()]


def _parse_one(text: str) -> tuple[str, int]:
    _, _, place = text.rpartition("://")
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    if not host or (port and not port.isdigit()):
        raise ValueError(f"{text!r} is no address; write host:port, for example localhost:{DEFAULT_PORT}")
    return host, int(port) if port else DEFAULT_PORT
