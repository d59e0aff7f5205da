"""The settings of the transaction coordinator, under Kafka's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    max_timeout_ms: int = 900_000
    """`transaction.max.timeout.ms`"""
    expiration_ms: int = 604_800_000
    """after which an unused id is forgotten; `transactional.id.expiration.ms`"""
    expiration_check_interval_ms: int = 3_600_000
    """`transaction.remove.expired.transaction.cleanup.interval.ms`"""
    retry_ms: int = 1_000
    """after which a decision that was not committed in time is written again"""
