"""How a follower fetches: what the properties say, as values."""

from __future__ import annotations

from typing import NamedTuple


class FetcherSettings(NamedTuple):
    node_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    """of one answer"""
    partition_bytes: int
    """of one partition in it"""
    backoff_ms: int
    timeout_ms: int
