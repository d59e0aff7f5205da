"""How far a query has come, shown as the offsets of a consumer group, so that every Kafka tool can tell its lag.

The checkpoint decides what is read; the group only shows it. So a commit that fails is said and not fatal.
"""

from __future__ import annotations

import logging
import time

from penstock.base.errors import ErrorCode, KafkaError
from penstock.pipeline.source.lookup import Lookup
from penstock.pipeline.source.options import ReadOptions
from penstock.pipeline.source.positions import Offsets, Positions

log = logging.getLogger(__name__)

QUIET_S = 30.0
"""After a failure nothing is tried for so long: a coordinator that does not answer must not slow the batches down."""


class Progress:
    def __init__(self, options: ReadOptions, lookup: Lookup) -> None:
        self._options = options
        self._lookup = lookup
        self._shown: Offsets = {}
        self._quiet_until_s = 0.0

    def group_id(self, query: str) -> str:
        return self._options.group_id or f"{self._options.group_prefix}-{query}"

    def show(self, done: Positions) -> None:
        """Everything before these positions has been processed."""
        if not self._options.commit_offsets or not done.query or time.monotonic() < self._quiet_until_s:
            return
        changed = {one: offset for one, offset in done.offsets.items() if self._shown.get(one) != offset}
        if not changed:
            return
        group_id = self.group_id(done.query)
        try:
            self._lookup.commit(group_id, changed)
        except KafkaError as error:
            self._quiet_until_s = time.monotonic() + QUIET_S
            log.warning("the progress of group %s cannot be shown: %s", group_id, _cause(error, group_id))
            return
        self._shown.update(changed)


def _cause(error: KafkaError, group_id: str) -> str:
    if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
        return f"consumers are using {group_id}; give this query another kafka.group.id"
    return str(error)
