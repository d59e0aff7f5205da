"""Share sessions: which partitions a member fetches from this broker, so that its requests need not name them all.

Epoch 0 begins a session, each request has the next number, -1 ends it. A session lives as long as the connection that
began it: when that is gone, so is the member, as far as this broker is concerned.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import SHARE_SESSION_PLACES_MAX

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1

Place = tuple[bytes, int]
"""a topic's id and a partition's number"""


class ShareSession:
    def __init__(self, group: str, member: str, owner: object) -> None:
        self.group = group
        self.member = member
        self.owner = owner
        """the connection"""
        self.epoch = INITIAL_EPOCH
        """the next request's"""
        self.places: dict[Place, None] = {}
        self.ended = False
        self.turn = 0
        """where the next answer begins, so that no partition starves"""

    def advance(self, epoch: int) -> None:
        """A request has come: KafkaError where it is not the next one."""
        if epoch != self.epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, f"epoch {self.epoch} was to come next, {epoch} came"
            )
        self.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1

    def change(self, wanted: Iterable[Place], forgotten: Iterable[Place]) -> None:
        for place in wanted:
            self.places.setdefault(place)
        for place in forgotten:
            self.places.pop(place, None)
        if len(self.places) > SHARE_SESSION_PLACES_MAX:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"a share session has at most {SHARE_SESSION_PLACES_MAX} partitions"
            )

    def in_turn(self) -> list[Place]:
        """Every place, another one first each time."""
        places = list(self.places)
        if not places:
            return places
        begin = self.turn % len(places)
        self.turn += 1
        return places[begin:] + places[:begin]


class ShareSessions:
    def __init__(self, sessions_max: int) -> None:
        self._max = sessions_max
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._members: dict[str, int] = {}
        """sessions by group"""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, group: str, member: str, owner: object) -> ShareSession:
        """A new one, in place of the one that the member had."""
        if (group, member) not in self._sessions and len(self._sessions) >= self._max:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self.end(group, member)
        self._members[group] = self._members.get(group, 0) + 1
        session = self._sessions[(group, member)] = ShareSession(group, member, owner)
        session.advance(INITIAL_EPOCH)
        return session

    def find(self, group: str, member: str) -> ShareSession:
        session = self._sessions.get((group, member))
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def end(self, group: str, member: str) -> ShareSession | None:
        session = self._sessions.pop((group, member), None)
        if session is not None:
            session.ended = True
            self._members[group] -= 1
            if not self._members[group]:
                del self._members[group]
        return session

    def owned_by(self, owner: object) -> list[ShareSession]:
        return [session for session in self._sessions.values() if session.owner is owner]

    def has(self, group: str) -> bool:
        """Whether any member of the group is here."""
        return group in self._members
