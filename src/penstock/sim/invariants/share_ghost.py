"""What is true of share groups (KIP-932), kept from what leaders hand out, from what members are told, and from what
was committed of the share states.

Q1  a record is with one member at most: nobody gets what another has until that one has said what became of it and
    that is kept, or is gone, or has had it as long as a lock lasts; and only who has a record may say what became of it
Q2  a record whose acceptance a member was told of is handed out no more by whoever leads
Q3  each delivery of a record has the next count, and none a higher one than the group's limit
Q4  where a group begins in a partition never goes back, unless somebody begins it anew
Q5  when the group has come to the end, each record that was acked has been handed out
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

from penstock.base.ids import SHARE_STATE_TOPIC
from penstock.core.log.log import Log
from penstock.protocol.generated.share_snapshot_key import ShareSnapshotKey
from penstock.protocol.generated.share_snapshot_value import ShareSnapshotValue
from penstock.protocol.generated.share_update_key import ShareUpdateKey
from penstock.protocol.generated.share_update_value import ShareUpdateValue
from penstock.sim.invariants.batches import Batch, read_records_of

_VERSION = Struct(">h")
_SNAPSHOT, _UPDATE = 0, 1
_KEPT = -1
_RENEW = 4

Record = tuple[str, str, int]
"""group, partition's name, offset"""


@dataclass(slots=True)
class Lock:
    member: str
    until_ms: int
    said: bool = False
    """what became of the record is being kept: nobody gets it until that has succeeded or failed"""


Locks = dict[int, Lock]
"""by offset; of one partition, one group and one leader epoch of one life of a broker"""


class ShareGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._locks: dict[tuple[object, ...], Locks] = {}
        self._counts: dict[tuple[int, int], int] = {}
        """(a leader's object, offset) -> deliveries"""
        self._begun: dict[tuple[str, bytes, int], tuple[int, int]] = {}
        """(group, topic id, partition) -> state epoch and start offset, as committed"""
        self._pinned: list[object] = []
        """the objects of `_counts`, so that no two ever have one identity"""
        self.handed: dict[Record, int] = {}
        """every record that was handed out -> the highest count"""
        self.worn: set[Record] = set()
        """those that were handed out as often as they may be"""
        self._accepted: set[Record] = set()

    def handed_out(
        self, shared: Any, life: object, member: str, acquired: Sequence[Any], now_ms: int, leads: bool
    ) -> None:
        """A leader, or one that takes itself for it, gives these ranges to a member."""
        locks = self._locks_of(shared, life)
        limits = shared.settings().limits
        for offset, count in _offsets(acquired):
            record = (shared.key.group_id, str(shared.partition.name), offset)
            held = locks.get(offset)
            if held is not None and (held.said or now_ms < held.until_ms):
                self._tell("Q1", f"{record} is with {held.member}, and {member} gets it")
            locks[offset] = Lock(member, now_ms + limits.lock_ms)
            if leads and record in self._accepted:
                self._tell("Q2", f"{record} was accepted, and {member} gets it")
            self._count(shared, record, offset, count, limits.delivery_limit)

    def acknowledged(
        self, shared: Any, life: object, member: str, said: Iterable[Any], start: int, now_ms: int
    ) -> None:
        """What a member says of its records is taken; it is not kept yet."""
        locks = self._locks_of(shared, life)
        for one in said:
            for first, last, kind in one.parts(start):
                for offset in range(first, last + 1):
                    held = locks.get(offset)
                    if held is None or held.said or held.member != member:
                        where = f"{shared.key.group_id} {shared.partition.name} {offset}"
                        self._tell("Q1", f"{where} is with {held and held.member}, and {member} says what became of it")
                    elif kind == _RENEW:
                        held.until_ms = now_ms + shared.settings().limits.lock_ms
                    else:
                        held.said = True

    def kept(self, shared: Any, life: object, batches: Iterable[Any], stored: bool, retry_ms: int) -> None:
        """What became of these records is kept, or could not be: then the member still has them."""
        locks = self._locks_of(shared, life)
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                held = locks.get(offset)
                if stored:
                    locks.pop(offset, None)
                elif held is not None:
                    held.said, held.until_ms = False, max(held.until_ms, retry_ms)

    def released(self, shared: Any, life: object, member: str) -> None:
        """The member is gone."""
        locks = self._locks_of(shared, life)
        for offset in [at for at, held in locks.items() if held.member == member and not held.said]:
            del locks[offset]

    def accepted(self, group_id: str, name: str, offset: int) -> None:
        """A member was told that it is done with this record."""
        self._accepted.add((group_id, name, offset))

    def missing(self, group_id: str, acked: Iterable[tuple[str, int]]) -> Iterator[str]:
        """Of what was acked, all that was never handed out (Q5)."""
        for name, offset in acked:
            if (group_id, name, offset) not in self.handed:
                yield f"offset {offset} of {name} was acked, and {group_id} was never handed it"

    def committed(self, name: str, batch: Batch, log: Log) -> None:
        """A watermark has passed this batch, for the first time."""
        if batch.control or not name.startswith(f"{SHARE_STATE_TOPIC}-"):
            return
        for record in read_records_of(log, batch):
            if record.key is not None:
                self._take(bytes(record.key), None if record.value is None else bytes(record.value))

    def _take(self, key: bytes, value: bytes | None) -> None:
        kind = _VERSION.unpack_from(key)[0]
        body = memoryview(key)[_VERSION.size :]
        name = (ShareSnapshotKey if kind == _SNAPSHOT else ShareUpdateKey).decode(body, 0)
        place = (name.group_id, name.topic_id, name.partition)
        if value is None:
            self._begun.pop(place, None)
            return
        epoch, start = self._begun.get(place, (-1, _KEPT))
        told = memoryview(value)[_VERSION.size :]
        if kind == _SNAPSHOT:
            snapshot = ShareSnapshotValue.decode(told, 0)
            news = (snapshot.state_epoch, snapshot.start_offset)
        else:
            update = ShareUpdateValue.decode(told, 0)
            news = (epoch, start if update.start_offset == _KEPT else update.start_offset)
        if news[0] == epoch and news[1] < start:
            self._tell("Q4", f"{name.group_id} begins partition {name.partition} at {news[1]}, and did at {start}")
        self._begun[place] = news

    def _locks_of(self, shared: Any, life: object) -> Locks:
        return self._locks.setdefault((life, shared.key, shared.leader_epoch), {})

    def _count(self, shared: Any, record: Record, offset: int, count: int, limit: int) -> None:
        mark = (id(shared), offset)
        before = self._counts.get(mark)
        if before is None:
            self._pinned.append(shared)
        if count > limit or (before is not None and count != before + 1):
            self._tell("Q3", f"{record} is delivered for the {count}. time, after {before}, of {limit}")
        self._counts[mark] = count
        self.handed[record] = max(count, self.handed.get(record, 0))
        if count >= limit:
            self.worn.add(record)


def _offsets(acquired: Sequence[Any]) -> Iterator[tuple[int, int]]:
    for one in acquired:
        for offset in range(one.first_offset, one.last_offset + 1):
            yield offset, one.delivery_count
