"""How much replication may carry: which replicas are throttled, and whether their rate is used up (KIP-73).

The rate is that of Kafka: the bytes of the last windows over the time since the first of them began, a window at least.
"""

from __future__ import annotations

from collections import deque

UNLIMITED = 2**63 - 1
_EVERY = "*"


class ReplicationQuota:
    """Of what this broker sends as a leader, or of what it fetches as a follower."""

    __slots__ = ("_samples", "_total", "_window_ms", "_windows", "limit", "throttled")

    def __init__(self, windows: int, window_ms: int) -> None:
        self.limit = UNLIMITED
        """bytes a second"""
        self._windows = windows
        self._window_ms = window_ms
        self.throttled: dict[str, frozenset[int] | None] = {}
        """by topic, the partitions; None: all of them. Empty where nothing is throttled at all."""
        self._samples: deque[list[int]] = deque()
        """[when the window began, bytes], oldest first; at most `windows` of them, and one"""
        self._total = 0

    def throttle(self, topic: str, replicas: str, node_id: int) -> None:
        """`replicas`: partition:broker pairs, `*` for all, or nothing, as the topic's configuration says it."""
        items = [item.strip() for item in replicas.split(",")]
        pairs = [item.split(":") for item in items if item and item != _EVERY]
        indexes = frozenset(int(index) for index, broker in pairs if int(broker) == node_id)
        if _EVERY in items:
            self.throttled[topic] = None
        elif indexes:
            self.throttled[topic] = indexes
        else:
            self.throttled.pop(topic, None)

    def is_throttled(self, topic: str, index: int) -> bool:
        if topic not in self.throttled:
            return False
        indexes = self.throttled[topic]
        return indexes is None or index in indexes

    def record(self, size_bytes: int, now_ms: int) -> None:
        """A throttled replica has sent or received so much."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window_ms:
            samples.append([now_ms, 0])
        samples[-1][1] += size_bytes
        self._total += size_bytes
        self._forget(now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        self._forget(now_ms)
        if not self._samples:
            return False
        elapsed_ms = max(now_ms - self._samples[0][0], self._window_ms)
        return self._total * 1000 > self.limit * elapsed_ms

    def _forget(self, now_ms: int) -> None:
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self._windows * self._window_ms:
            self._total -= samples.popleft()[1]
