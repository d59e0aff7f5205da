"""How a running query is ended without breaking off the batch that is under way."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

_POLL_S = 0.05


def stop_after_batch(query: StreamingQuery, wait: Callable[[float], bool], timeout_s: float) -> None:
    """`wait` is the query's own, which is true where it has ended. After the time-out the batch is broken off: it is
    repeated at the next start."""
    waited_s = 0.0
    while query.isActive and query.status["isTriggerActive"] and waited_s < timeout_s:
        if wait(_POLL_S):
            return
        waited_s += _POLL_S
    query.stop()
