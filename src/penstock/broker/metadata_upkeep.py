"""What the metadata log needs now and then, away from the loop: to be synced, and to be cut short by a snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from penstock.base.errors import KafkaError
from penstock.base.ports import Jobs
from penstock.broker.journal import Journal
from penstock.broker.metadata_log import MetadataLog
from penstock.core.log.sync import SyncWork
from penstock.core.metadata.image import Image
from penstock.core.raft.voters import Control

log = Journal(__name__)


class MetadataUpkeep:
    """Invariant: one sync and one snapshot at a time."""

    def __init__(self, metadata: MetadataLog, jobs: Jobs, synced: Callable[[OSError | None], None]) -> None:
        """`synced` is called when more of the log is durable, or with why it never will be."""
        self._log = metadata
        self._jobs = jobs
        self._synced = synced
        self._syncing: asyncio.Future[None] | None = None
        self._snapshotting: asyncio.Future[None] | None = None

    def sync(self) -> None:
        """What is appended while a sync runs goes with the next."""
        work = None if self._syncing is not None else self._log.log.unsynced()
        if work is not None:
            self._syncing = asyncio.get_running_loop().create_future()
            self._jobs.run(work.run, lambda outcome: self._on_synced(work, outcome))

    def shorten(self, image: Image, controls: Callable[[], Sequence[Control]]) -> None:
        """Write a snapshot of `image` where one is due; what it makes superfluous goes."""
        if self._snapshotting is not None or not self._log.snapshots.due(image):
            return
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._snapshotting = written
        work = self._log.snapshots.writing(image, controls())
        self._jobs.run(work, lambda outcome: self._on_written(written, outcome))

    async def finished(self) -> None:
        """Nothing is under way any more. The log must not be closed before: where a sync fails, one that follows finds
        nothing left to do, succeeds, and would have the log called durable that is not."""
        for under_way in (self._syncing, self._snapshotting):
            if under_way is not None:
                await under_way

    def _on_synced(self, work: SyncWork, outcome: BaseException | None) -> None:
        assert self._syncing is not None
        self._syncing.set_result(None)
        self._syncing = None
        if outcome is None:
            self._log.log.on_synced(work)
            self._synced(None)
        else:
            assert isinstance(outcome, OSError), outcome
            self._log.log.on_sync_failed(outcome)
            self._synced(outcome)

    def _on_written(self, written: asyncio.Future[None], outcome: BaseException | None) -> None:
        self._snapshotting = None
        written.set_result(None)
        if outcome is not None:
            log.warning("a snapshot of the metadata could not be written; the log is kept", fault=str(outcome))
            return
        try:
            self._log.prune()
        except (KafkaError, OSError) as fault:
            log.warning("what a snapshot of the metadata makes superfluous could not be removed", fault=str(fault))
