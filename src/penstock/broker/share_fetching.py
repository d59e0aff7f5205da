"""Answering share fetches: records acquired from the partitions of a session, now or when there are some.

A fetch that finds less than its `min_bytes` waits at each of its share-partitions: what is appended, released or timed
out there has it look again, in the same tick, those first who wait longest. A timer ends the wait.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.slices import Slice
from penstock.broker.partitions import Partitions
from penstock.broker.share_choosing import batches_of, inspect
from penstock.broker.share_reading import Found, look, pieces
from penstock.broker.shared_partition import SharedPartition
from penstock.broker.shares import Shares
from penstock.core.security.acl import Operation, Resource
from penstock.core.sharing.sessions import Place, ShareSession
from penstock.core.sharing.states import Acquired

_LOOKS_MAX = 64
"""passes over offsets that hold nothing to hand out, before an answer without records is given"""


class Reader(Protocol):
    def allows(self, operation: Operation, resource: Resource, name: str) -> bool: ...


class Wanted(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    exact: bool
    """never more than `max_records` (share.acquire.mode=record_limit)"""


class Outcome(NamedTuple):
    """What one partition has to give."""

    place: Place
    fault: KafkaError | None
    slices: list[Slice]
    acquired: list[Acquired]


class Seen(NamedTuple):
    """What could be handed out of one partition."""

    found: list[Found]
    offsets: list[int] | None
    """the records that were chosen, where the group has them chosen one by one"""


Candidates = dict[Place, SharedPartition]


async def fetch(shares: Shares, session: ShareSession, reader: Reader, wanted: Wanted) -> list[Outcome]:
    """Only partitions that have something, or cannot be read."""
    places = session.in_turn()
    known = {place: _at_hand(shares, session.group, place, reader) for place in places}
    missing = [place for place, one in known.items() if one is None]
    if missing:
        loaded = await asyncio.gather(*(_loaded(shares, session.group, place) for place in missing))
        known |= zip(missing, loaded, strict=True)
    faults = [Outcome(place, one, [], []) for place, one in known.items() if isinstance(one, KafkaError)]
    candidates = {place: one for place, one in known.items() if isinstance(one, SharedPartition)}
    poll = Poll(session, candidates, wanted, faults)
    poll.look(final=bool(faults) or wanted.max_wait_ms <= 0)
    outcomes = await poll.outcomes()
    _count(shares.partitions, places, outcomes)
    return outcomes


def _count(partitions: Partitions, places: list[Place], outcomes: list[Outcome]) -> None:
    for place in places:
        partition = partitions.get(*place)
        if partition is not None:
            partition.traffic.share_fetches += 1
    for place, fault, slices, _ in outcomes:
        partition = partitions.get(*place)
        if partition is not None:
            partition.traffic.failed_share_fetches += fault is not None
            partition.traffic.bytes_out += sum(one.length for one in slices)


def _at_hand(shares: Shares, group: str, place: Place, reader: Reader) -> SharedPartition | KafkaError | None:
    """None: it may be read, and is to be loaded."""
    try:
        partition = shares.partitions.find(*place)
        if not reader.allows(Operation.READ, Resource.TOPIC, partition.name.topic):
            return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return shares.at_hand(group, place)
    except KafkaError as fault:
        return fault


async def _loaded(shares: Shares, group: str, place: Place) -> SharedPartition | KafkaError:
    try:
        return await shares.shared(group, place)
    except KafkaError as fault:
        return fault


class Poll:
    """One share fetch, as long as it looks for records."""

    def __init__(self, session: ShareSession, candidates: Candidates, wanted: Wanted, faults: list[Outcome]) -> None:
        self._session = session
        self._candidates = candidates
        self._wanted = wanted
        self._faults = faults
        self._done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()

    async def outcomes(self) -> list[Outcome]:
        """Once there is enough, or no more time."""
        if self._done.done():
            return self._done.result()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._wanted.max_wait_ms / 1000, lambda: self.look(final=True))
        for shared in self._candidates.values():
            shared.wait(self)
        try:
            return await self._done
        finally:
            timer.cancel()
            for shared in self._candidates.values():
                shared.leave(self)

    def look(self, *, final: bool = False) -> None:
        if self._done.done():
            return
        found = self._collect(final)
        if found is not None:
            self._done.set_result(self._faults + found)

    def _collect(self, final: bool) -> list[Outcome] | None:
        """What to answer; None: not enough yet. A look may find nothing but offsets that hold no records: those are
        set aside, and it looks again."""
        if self._session.ended:
            return []
        for _ in range(_LOOKS_MAX):
            found, faults = self._find()
            size = sum(one.piece.length for seen in found.values() for one in seen.found if one.batch.deliverable)
            if not found and not faults:
                return [] if final else None
            if size < self._wanted.min_bytes and not final and not faults:
                return None
            outcomes = self._acquire(found)
            if outcomes or faults:
                return outcomes + faults
        return []

    def _find(self) -> tuple[dict[Place, Seen], list[Outcome]]:
        wanted = self._wanted
        room, records = wanted.max_bytes, wanted.max_records
        found: dict[Place, Seen] = {}
        faults: list[Outcome] = []
        for place, shared in self._candidates.items():
            if room <= 0 or records <= 0:
                break
            try:
                seen = _look(shared, room, records)
            except KafkaError as fault:
                faults.append(Outcome(place, fault, [], []))
                continue
            if seen.found:
                found[place] = seen
                room -= sum(one.piece.length for one in seen.found)
                records -= sum(one.batch.last_offset - one.batch.looked_from + 1 for one in seen.found)
        return found, faults

    def _acquire(self, found: dict[Place, Seen]) -> list[Outcome]:
        wanted, room = self._wanted, self._wanted.max_records
        outcomes = []
        for place, (batches, offsets) in found.items():
            if room <= 0:
                break
            shared, member = self._candidates[place], self._session.member
            if offsets is None:
                acquired = shared.acquire(member, [one.batch for one in batches], room, wanted.exact, wanted.batch_size)
            else:
                acquired = shared.take(member, offsets[:room])
            if acquired:
                room -= sum(one.records for one in acquired)
                outcomes.append(Outcome(place, None, pieces(batches, acquired), acquired))
        return outcomes


def _look(shared: SharedPartition, room_bytes: int, max_records: int) -> Seen:
    settings, partition, share = shared.settings(), shared.partition, shared.share()
    if not settings.rules:
        found = look(partition, share, room_bytes, max_records, committed_only=settings.committed_only)
        return Seen(found, None)
    inspect(partition, share, settings.rules, committed_only=settings.committed_only)
    offsets = shared.chosen(max_records)
    return Seen(batches_of(partition, offsets), offsets)
