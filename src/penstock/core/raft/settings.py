"""How patient a node of the quorum is. Kafka's names and defaults, and what goes beyond them."""

from __future__ import annotations

from typing import NamedTuple


class Settings(NamedTuple):
    election_timeout_ms: int = 1_000
    election_backoff_max_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1_048_576
    snapshot_max_bytes: int = 1_048_576
    auto_join: bool = False
    eager: bool = True
    """Beyond Kafka: a voter asks for pre-votes as soon as it has started or its leader's node refuses connections, and
    not only after a timeout. A pre-vote disturbs nobody: voters that hear from a leader deny it."""
    eager_jitter_ms: int = 50

    @property
    def fetch_wait_ms(self) -> int:
        """how long a leader may keep a fetch that has nothing to bring: well within a follower's patience"""
        return min(500, self.fetch_timeout_ms // 3)

    @property
    def check_quorum_ms(self) -> int:
        """a leader that has not heard from a majority for so long resigns"""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_epoch_ms(self) -> int:
        """a voter that has not fetched for so long is told again who leads"""
        return self.fetch_timeout_ms // 2
