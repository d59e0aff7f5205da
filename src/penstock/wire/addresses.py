"""Addresses as people write them: `host`, `host:port`, `[v6]:port`, several separated by commas."""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_PORT = 9092


def parse(bootstrap: str | Sequence[str]) -> list[tuple[str, int]]:
    """ValueError where an address has no host or its port is no number."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    return [_parse_one(text.strip()) for text in texts if text.strip()]


def _parse_one(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if not host or (port and not port.isdigit()):
        raise ValueError(f"{text!r} is no address; write host:port, for example localhost:{DEFAULT_PORT}")
    return host, int(port) if port else DEFAULT_PORT
