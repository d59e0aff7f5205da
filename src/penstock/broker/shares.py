"""Share groups on the brokers that lead the partitions: share-partitions by key, and the sessions of members.

A share-partition is kept while a member of its group has a session here; after the last one it is read anew, for its
start may be moved meanwhile (AlterShareGroupOffsets).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock
from penstock.broker.partitions import Partitions
from penstock.broker.share_settings import GroupSettings
from penstock.broker.share_state import ShareStates
from penstock.broker.shared_partition import Bury, SharedPartition
from penstock.core.share.requests import ShareKey
from penstock.core.sharing.acknowledging import Acknowledgement, check
from penstock.core.sharing.counts import ShareCounts
from penstock.core.sharing.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, ShareSession, ShareSessions

Acknowledgements = dict[Place, list[Acknowledgement]]


class Shares:
    def __init__(
        self,
        partitions: Partitions,
        states: ShareStates,
        settings: GroupSettings,
        clock: Clock,
        sessions_max: int,
        bury: Bury,
    ) -> None:
        self.partitions = partitions
        self.settings = settings
        self.sessions = ShareSessions(sessions_max)
        self._states = states
        self._clock = clock
        self._bury = bury
        self._shared: dict[ShareKey, SharedPartition] = {}
        self._past = ShareCounts()
        """of share-partitions that are forgotten"""

    def held(self) -> list[SharedPartition]:
        return list(self._shared.values())

    def counts(self) -> ShareCounts:
        """Of all share-partitions since the broker was started."""
        total = ShareCounts()
        for counts in (self._past, *(shared.counts for shared in self._shared.values())):
            total.add(counts)
        return total

    def begin(self, group: str, member: str, epoch: int, owner: object) -> ShareSession:
        """The session of a share fetch. KafkaError where it is none."""
        if epoch == INITIAL_EPOCH:
            return self.sessions.begin(group, member, owner)
        session = self.sessions.find(group, member)
        if epoch != FINAL_EPOCH:
            session.advance(epoch)
        return session

    def end(self, group: str, member: str) -> None:
        """The member is done here, or gone: others may have what it had."""
        if self.sessions.end(group, member) is None:
            return
        for shared in [one for key, one in self._shared.items() if key.group_id == group]:
            shared.release(member)
            self._tidy(shared)

    def connection_lost(self, owner: object) -> None:
        for session in self.sessions.owned_by(owner):
            self.end(session.group, session.member)

    def at_hand(self, group: str, place: Place) -> SharedPartition | None:
        """A share-partition whose state is here already."""
        shared = self._shared.get(ShareKey(group, *place))
        return shared if shared is not None and shared.is_loaded and shared.is_current else None

    async def shared(self, group: str, place: Place) -> SharedPartition:
        """A share-partition with its state. KafkaError where the partition is not led here, or nothing is known."""
        partition = self.partitions.find(*place)
        partition.must_lead()
        key = ShareKey(group, *place)
        shared = self._shared.get(key)
        if shared is None or not shared.is_current:
            if shared is not None:
                shared.close()
                self._forget(shared)
            settings = partial(self.settings.of, group)
            shared = SharedPartition(
                key, partition, self._states, settings, self._clock, self.partitions.waiters, self._tidy, self._bury
            )
            self._shared[key] = shared
        await shared.loaded()
        return shared

    async def acknowledge(
        self, group: str, member: str, said: Acknowledgements, *, renewing: bool, allowed: Callable[[Place], bool]
    ) -> dict[Place, KafkaError | None]:
        """What became of the acknowledgements of each partition; all are persisted at the same time."""
        out: dict[Place, KafkaError | None] = {}
        waiting: dict[Place, asyncio.Future[None]] = {}
        for place, acknowledgements in said.items():
            try:
                told = self._acknowledge(group, member, place, acknowledgements, renewing, allowed)
                if told is not None:
                    waiting[place] = told
                out[place] = None
            except KafkaError as fault:
                out[place] = fault
        for place, told in waiting.items():
            try:
                await asyncio.shield(told)
            except KafkaError as fault:
                out[place] = fault
        self._count(out)
        return out

    def _acknowledge(
        self,
        group: str,
        member: str,
        place: Place,
        said: Sequence[Acknowledgement],
        renewing: bool,
        allowed: Callable[[Place], bool],
    ) -> asyncio.Future[None] | None:
        if not allowed(place):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        check(said, renewing=renewing)
        self.partitions.find(*place).must_lead()
        shared = self._shared.get(ShareKey(group, *place))
        if shared is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the member has acquired nothing here")
        return shared.acknowledge(member, said)

    def _count(self, told: dict[Place, KafkaError | None]) -> None:
        for place, fault in told.items():
            partition = self.partitions.get(*place)
            if partition is not None:
                partition.traffic.share_acknowledges += 1
                partition.traffic.failed_share_acknowledges += fault is not None

    def _tidy(self, shared: SharedPartition) -> None:
        """Forget a share-partition that is of another epoch or could not be read, or that nobody uses."""
        if shared.is_current and (not shared.is_idle or self.sessions.has(shared.key.group_id)):
            return
        shared.close()
        if self._shared.get(shared.key) is shared:
            self._forget(shared)

    def _forget(self, shared: SharedPartition) -> None:
        self._past.add(shared.counts)
        del self._shared[shared.key]

    def close(self) -> None:
        for shared in self._shared.values():
            shared.close()
