"""One node of the quorum: its epoch, its role, and the doors through which time and messages come in.

A role (one file each) decides what to send and when; requests are answered in `answering.py`; this file keeps what
outlives a role and how one follows another.
"""

from __future__ import annotations

from typing import Protocol

from penstock.base.errors import ErrorCode
from penstock.base.limits import QUORUM_EPOCH_STEP_MAX
from penstock.base.ports import Random
from penstock.core.raft import answering
from penstock.core.raft.candidate import Candidate
from penstock.core.raft.follower import Follower
from penstock.core.raft.leader import Leading
from penstock.core.raft.peers import Peers, lane_of
from penstock.core.raft.prospective import Prospective
from penstock.core.raft.replicated_log import ReplicatedLog
from penstock.core.raft.resigned import Resigned
from penstock.core.raft.rpc import (
    NO_LEADER,
    UNTOLD_EPOCH,
    Answer,
    Answered,
    Event,
    Failed,
    Fetch,
    Leader,
    Received,
    Reply,
    Request,
    Send,
    Vote,
)
from penstock.core.raft.settings import Settings
from penstock.core.raft.state import NOBODY, QuorumState
from penstock.core.raft.unattached import Unattached
from penstock.core.raft.voters import Replica, Voter, VoterEndpoint, VoterHistory

_EPOCH_LAST = (1 << 31) - 2
"""behind which an int32 has room for one more"""


class Role(Protocol):
    name: str
    """as Kafka's metrics call it"""

    def poll(self, raft: Raft, now_ms: int) -> int:
        """Do what is due; when to be called again."""

    def on_answer(self, raft: Raft, peer: int, request: Request, answer: Answer, now_ms: int) -> None: ...

    def on_failure(self, raft: Raft, peer: int, request: Request, refused: bool, now_ms: int) -> None: ...

    def grants(self, raft: Raft, vote: Vote) -> bool:
        """Whether a candidate whose log is as good as ours gets this node's voice."""


class Ready:
    """What is to be done now: messages, which may leave at once, and a sync of the log where it is not durable."""

    __slots__ = ("replies", "sends", "unsynced")

    def __init__(self, sends: list[Send], replies: list[Reply], unsynced: bool) -> None:
        self.sends = sends
        self.replies = replies
        self.unsynced = unsynced


class Raft:
    """Invariants: (1) epoch and vote are saved before anything is said or written that rests on them; (2) `epoch` never
    falls; (3) in an epoch a node votes once, and not at all once it knows its leader; (4) `high_watermark` never
    falls, and the log is never cut below it."""

    def __init__(
        self,
        me: Voter,
        log: ReplicatedLog,
        stored: QuorumState,
        history: VoterHistory,
        settings: Settings,
        random: Random,
        *,
        now_ms: int,
        contacts: tuple[int, ...] = (),
    ) -> None:
        self.me = me
        self.log = log
        self.history = history
        self.settings = settings
        self.contacts = contacts
        """Peers to be asked who leads, where no voter is known: bootstrap servers."""
        self.peers = Peers(settings.request_timeout_ms, settings.retry_backoff_ms)
        self.epoch = max(stored.leader_epoch, log.last_epoch)
        self.leader = Leader(NO_LEADER, self.epoch)
        self.voted: Replica | None = None
        snapshot = log.snapshot
        self.high_watermark = snapshot.offset if snapshot is not None else 0
        self.told_watermark: int | None = None
        """The furthest that a leader has told to be committed since this node started; None: nothing yet. The log may
        not reach so far."""
        self.deadline_ms = 0
        """When `tick` is due."""
        self.elections = 0
        """Since a leader was last known: back-off grows with them."""
        self.refusing: dict[int, None] = {}
        """Peers that did not take what they were sent last in this role: nobody listens there, or it is stopping. Not
        those of whom nothing is heard."""
        self._random = random
        self._sends: list[Send] = []
        self._replies: list[Reply] = []
        self._asked = 0
        self.role: Role = self._first_role(stored, now_ms)

    @property
    def epoch_max(self) -> int:
        """That another node may speak of. It is stored once it is believed, and behind it there must be room to stand:
        a limit that is the same for ever would be where elections end."""
        return min(self.epoch + QUORUM_EPOCH_STEP_MAX, _EPOCH_LAST)

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        while True:
            role = self.role
            self.deadline_ms = role.poll(self, now_ms)
            if role is self.role:
                return

    def step(self, event: Event, now_ms: int) -> None:
        """Something came in."""
        if isinstance(event, Received):
            if isinstance(event.request, Fetch):
                self.refusing.pop(event.request.replica.id, None)
            answering.answer(self, event, now_ms)
        else:
            self._settle(event, now_ms)
        self.tick(now_ms)

    def advance(self, now_ms: int) -> None:
        """More of the log is durable."""
        if isinstance(self.role, Leading):
            self.role.on_synced(self, now_ms)
        self.tick(now_ms)

    def ready(self) -> Ready:
        """Hand out what is to be done; asked for after each of the doors above."""
        sends, self._sends = self._sends, []
        replies, self._replies = self._replies, []
        return Ready(sends, replies, self.log.synced_offset < self.log.end_offset)

    def append(self, batch: bytearray, now_ms: int) -> int:
        """As the leader: a batch of metadata records. Its last offset."""
        assert isinstance(self.role, Leading)
        last_offset = self.log.append(batch, self.epoch, now_ms)
        self.role.on_appended(self, now_ms)
        return last_offset

    def resign(self, now_ms: int) -> None:
        """Give up leading, on the way out or for want of followers; the others are told."""
        if isinstance(self.role, Leading):
            successors = self.role.successors(self)
            self.leader = Leader(NO_LEADER, self.epoch)
            self.voted = self.me.replica
            self._enter(Resigned(successors, self.patience_ms(now_ms)))

    def ask_around(self, now_ms: int) -> None:
        """Find out soon whether a majority is there. Whoever does not lead asks for votes or for a leader anyway."""
        if isinstance(self.role, Leading):
            self.role.tell_all(self, now_ms)

    @property
    def is_voter(self) -> bool:
        return self.history.is_voter(self.me.replica)

    @property
    def may_stand(self) -> bool:
        """A voter, or one that is about to be none: while the change is not committed it may be the only one that has
        what the others need to go on."""
        return self.is_voter or self.history.was_voter(self.me.replica, self.high_watermark)

    @property
    def is_leading(self) -> bool:
        """It leads, and everything before its epoch is committed."""
        return isinstance(self.role, Leading) and self.high_watermark > self.role.epoch_start

    @property
    def is_caught_up(self) -> bool:
        """All that was committed when this node joined is known to be: by a watermark that a leader has told, and that
        is past an entry of its own epoch. A snapshot alone is old, and a new leader's first watermark may be too; but
        one of this epoch has such an entry, and the log behind it may be empty for as long as nothing is written."""
        if self.is_leading:
            return True
        if self.told_watermark is None or self.high_watermark < self.told_watermark:
            return False
        snapshot = self.log.snapshot
        if snapshot is not None and snapshot.epoch == self.epoch:
            return self.high_watermark >= snapshot.offset
        return self.log.last_epoch == self.epoch and self.high_watermark > self.log.epoch_end(self.epoch - 1).end_offset

    @property
    def is_cut_off(self) -> bool:
        """So many voters refuse to be talked to that there is no majority: nothing can be committed as things are."""
        gone = sum(1 for one in self.history.voters if one.id in self.refusing)
        return gone > len(self.history.voters) - self.majority

    @property
    def others(self) -> list[Voter]:
        return [one for one in self.history.voters if one.id != self.me.id]

    @property
    def majority(self) -> int:
        return len(self.history.voters) // 2 + 1

    def address(self) -> Leader:
        """The leader with where it listens."""
        if self.leader.id == self.me.id:
            return _at(self.leader, self.me.endpoints)
        voter = self.history.find(self.leader.id)
        return self.leader if self.leader.port or voter is None else _at(self.leader, voter.endpoints)

    def below(self, bound: int) -> int:
        return self._random.below(max(bound, 1))

    def patience_ms(self, now_ms: int) -> int:
        """When to stand for election where a leader does not show up by itself."""
        return now_ms + self.settings.election_timeout_ms + self.below(self.settings.election_timeout_ms)

    def soon_ms(self, now_ms: int) -> int:
        """The same where there is no reason to wait, but others may think so too."""
        return now_ms + self.below(self.settings.eager_jitter_ms) if self.settings.eager else self.patience_ms(now_ms)

    def ask(self, peer: int, request: Request, now_ms: int) -> int:
        """Send, unless the peer is busy with an earlier request; when to ask again."""
        free_ms = self.peers.free_ms(peer, lane_of(request), now_ms)
        if free_ms > now_ms:
            return free_ms
        correlation = self.peers.sent(peer, request, now_ms)
        self._sends.append(Send(peer, correlation, request, self.settings.request_timeout_ms))
        return now_ms + self.settings.request_timeout_ms

    def reply(self, token: int, answer: Answer) -> None:
        self._replies.append(Reply(token, answer))

    def fetch(self, wait_ms: int = 0) -> Fetch:
        """Only where everything is durable that it claims to have."""
        assert self.log.synced_offset >= self.log.end_offset
        return Fetch(
            self.epoch,
            self.me.replica,
            self.log.end_offset,
            self.log.last_epoch,
            self.high_watermark,
            self.settings.fetch_max_bytes,
            wait_ms,
        )

    def look_for_leader(self, now_ms: int) -> int:
        """Ask one node after the other who leads: a fetch is answered with that."""
        candidates = [one.id for one in self.others] + list(self.contacts)
        if not candidates or self.log.synced_offset < self.log.end_offset:
            return now_ms + self.settings.retry_backoff_ms
        due_ms = self.peers.free_ms(candidates[self._asked % len(candidates)], "fetch", now_ms)
        if due_ms > now_ms:
            return due_ms
        self.ask(candidates[self._asked % len(candidates)], self.fetch(), now_ms)
        self._asked += 1
        return now_ms + max(self.settings.retry_backoff_ms, self.settings.eager_jitter_ms)

    def heed(self, heard: Leader, now_ms: int) -> bool:
        """What another node says of epoch and leader. True where this node's role has changed by it."""
        if not self.epoch <= heard.epoch <= self.epoch_max:
            return False
        knows = heard.id not in (NO_LEADER, self.me.id)
        # One that started again may know who leads and not where: it had heard that, and nothing yet of the voters.
        sought = self.leader.id == NO_LEADER or (self.leader.id == heard.id and isinstance(self.role, Unattached))
        if knows and (heard.epoch > self.epoch or sought):
            self.follow(heard, now_ms)
            return True
        if heard.epoch > self.epoch:
            self.enter_epoch(heard.epoch, now_ms)
            return True
        return False

    def follow(self, leader: Leader, now_ms: int) -> None:
        assert leader.epoch >= self.epoch and leader.id != self.me.id
        self._become(leader.epoch, leader, self.voted if leader.epoch == self.epoch else None)
        self.elections = 0
        self._enter(Follower(now_ms + self.settings.fetch_timeout_ms))

    def enter_epoch(self, epoch: int, now_ms: int) -> None:
        """A higher epoch was heard of, and nobody is known to lead it."""
        assert epoch > self.epoch
        self._become(epoch, Leader(NO_LEADER, epoch), None)
        self._enter(Unattached(self.patience_ms(now_ms)))

    def vote(self, candidate: Replica, now_ms: int) -> None:
        """For another, in the epoch that this node is in."""
        assert self.voted in (None, candidate) and self.leader.id == NO_LEADER
        if self.voted is None:
            self._become(self.epoch, self.leader, candidate)
        self._enter(Unattached(self.patience_ms(now_ms)))

    def stand(self, now_ms: int) -> None:
        """Ask whether an election would be won, before an epoch is spent on it."""
        self._enter(Prospective(self.patience_ms(now_ms)))

    def campaign(self, now_ms: int) -> None:
        self.elections += 1
        self._become(self.epoch + 1, Leader(NO_LEADER, self.epoch + 1), self.me.replica, ask=bool(self.others))
        self._enter(Candidate(self.patience_ms(now_ms)))

    def lead(self, granting: list[int], now_ms: int) -> None:
        self._become(self.epoch, Leader(self.me.id, self.epoch), None)
        self.elections = 0
        role = Leading(self, now_ms)
        self._enter(role)
        role.begin(self, granting, now_ms)

    def stand_back(self, now_ms: int) -> None:
        """The election came to nothing: back to the leader that is known, or wait for another."""
        if self.leader.id != NO_LEADER:
            self._enter(Follower(now_ms + self.settings.fetch_timeout_ms))
        else:
            self._enter(Unattached(self.soon_ms(now_ms)))

    def lose_leader(self, now_ms: int) -> None:
        """An observer's leader is not to be reached: look for another."""
        self.leader = Leader(NO_LEADER, self.epoch)
        self._enter(Unattached(self.patience_ms(now_ms)))

    def defer(self, now_ms: int) -> None:
        """A candidate lost: the others have a head start."""
        backoff_ms = min(self.settings.election_backoff_max_ms, 50 << min(self.elections, 10))
        self._enter(Unattached(now_ms + self.below(backoff_ms)))

    def commit_to(self, high_watermark: int) -> None:
        self.high_watermark = max(self.high_watermark, min(high_watermark, self.log.end_offset))

    def _settle(self, event: Answered | Failed, now_ms: int) -> None:
        under_way = self.peers.forget(event.correlation)
        if under_way is None:
            return
        peer, request = under_way.peer, under_way.request
        if isinstance(event, Failed):
            if event.refused:
                self.refusing[peer] = None
            self.peers.pause(peer, lane_of(request), now_ms + self.settings.retry_backoff_ms)
            self.role.on_failure(self, peer, request, event.refused, now_ms)
            return
        self.refusing.pop(peer, None)
        if event.answer.error is not ErrorCode.NONE:
            self.peers.pause(peer, lane_of(request), now_ms + self.settings.retry_backoff_ms)
        told = event.answer.leader
        if not self.heed(told, now_ms) and told.epoch in (self.epoch, UNTOLD_EPOCH):
            self.role.on_answer(self, peer, request, event.answer, now_ms)

    def _first_role(self, stored: QuorumState, now_ms: int) -> Role:
        """Where this node was when it stopped, as far as that is known."""
        if stored.leader_epoch == self.epoch:
            if stored.voted_id != NOBODY:
                self.voted = Replica(stored.voted_id, stored.voted_directory_id)
            if stored.leader_id == self.me.id:
                self.voted = self.me.replica
                return Resigned((), self.soon_ms(now_ms))
            if stored.leader_id != NOBODY:
                self.leader = Leader(stored.leader_id, self.epoch)
                if self.history.find(stored.leader_id) is not None:
                    return Follower(now_ms + self.settings.fetch_timeout_ms)
        return Unattached(self.soon_ms(now_ms))

    def _enter(self, role: Role) -> None:
        before, self.role = self.role, role
        self.refusing.clear()
        self.peers.resume()
        if isinstance(before, Leading):
            before.end(self)

    def _become(self, epoch: int, leader: Leader, voted: Replica | None, *, ask: bool = True) -> None:
        """Saved first; where that fails, nothing has changed. `ask`: others will hear of it; where there are none, a
        vote for oneself need not be kept, for leading follows at once and is."""
        if ask and (epoch, leader.id, voted) != (self.epoch, self.leader.id, self.voted):
            self.log.save(self._state(epoch, leader.id, voted))
        self.epoch, self.leader, self.voted = epoch, leader, voted

    def _state(self, epoch: int, leader_id: int, voted: Replica | None) -> QuorumState:
        dynamic = self.history.kraft_version > 0
        voted_id, directory_id = voted if voted is not None else Replica(NOBODY)
        return QuorumState(
            leader_id,
            epoch,
            voted_id,
            directory_id,
            version=1 if dynamic else 0,
            voters=() if dynamic else tuple(one.id for one in self.history.voters),
        )


def _at(leader: Leader, endpoints: tuple[VoterEndpoint, ...]) -> Leader:
    return Leader(leader.id, leader.epoch, endpoints[0].host, endpoints[0].port) if endpoints else leader
