"""Leader: it writes the log of its epoch, serves it to the others, and counts how much of it they have made durable.

The high watermark is what a majority of the voters has synced, and moves only past an entry of the leader's own epoch:
an older entry may be on a majority and still be lost to a later leader (Raft, figure 8). A leader whose majority does
not fetch resigns, so that nobody waits for what it cannot commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.base.errors import ErrorCode
from penstock.base.limits import QUORUM_REPLICAS_MAX
from penstock.core.raft.changes import Changes
from penstock.core.raft.log_ends import fit
from penstock.core.raft.peers import NEVER
from penstock.core.raft.rpc import (
    Answer,
    BeginEpoch,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    Request,
    SnapshotAnswer,
    Vote,
)
from penstock.core.raft.voters import Control, Replica, Voter, VoterHistory, encode_voters
from penstock.protocol.generated.leader_change_message import LeaderChangeMessage
from penstock.protocol.generated.leader_change_message import Voter as VoterField
from penstock.records.control import ControlType, build_control_batch

if TYPE_CHECKING:
    from penstock.core.raft.raft import Raft

OBSERVER_SESSION_MS = 300_000


@dataclass(slots=True)
class Progress:
    """How far a replica is, as its fetches tell."""

    end_offset: int = -1
    fetched_ms: int = -1
    caught_up_ms: int = -1
    """When it last had everything that the leader had at its fetch before."""
    _leader_end: int = -1

    def on_fetch(self, offset: int, leader_end: int, now_ms: int) -> None:
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif offset >= self._leader_end and self.fetched_ms >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset, self.fetched_ms, self._leader_end = offset, now_ms, leader_end


@dataclass(slots=True)
class Waiting:
    """A fetch that is kept until there is something to bring."""

    fetch: Fetch
    deadline_ms: int


class Leading:
    name = "leader"

    def __init__(self, raft: Raft, now_ms: int) -> None:
        self.epoch_start = raft.log.end_offset
        """The offset of the first entry of this epoch."""
        self.began_ms = now_ms
        self.replicas: dict[Replica, Progress] = {}
        self.changes = Changes(self)
        self._waiting: dict[int, Waiting] = {}

    def begin(self, raft: Raft, granting: Sequence[int], now_ms: int) -> None:
        controls = first_records(raft.history, raft.me, granting)
        self.write(raft, controls, now_ms)

    def write(self, raft: Raft, controls: list[Control], now_ms: int) -> int:
        """Control records: those of voters count from now on."""
        batch = build_control_batch(controls, timestamp=now_ms, leader_epoch=raft.epoch)
        last_offset = raft.log.append(batch, raft.epoch, now_ms)
        for offset, (kind, value) in enumerate(controls, last_offset - len(controls) + 1):
            raft.history.learn(kind, value, offset)
        self.on_appended(raft, now_ms)
        return last_offset

    def end(self, raft: Raft) -> None:
        """Another role follows: nobody is left waiting."""
        for token in self._waiting:
            raft.reply(token, FetchAnswer(raft.address(), ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self._waiting.clear()
        self.changes.end(raft)

    def poll(self, raft: Raft, now_ms: int) -> int:
        alive_ms = self._quorum_until_ms(raft)
        if now_ms >= alive_ms:
            raft.resign(now_ms)
            return now_ms
        for token in [token for token, one in self._waiting.items() if now_ms >= one.deadline_ms]:
            self._answer(raft, token, self._waiting.pop(token).fetch)
        waits_ms = min((one.deadline_ms for one in self._waiting.values()), default=NEVER)
        return min(alive_ms, waits_ms, self._tell(raft, now_ms), self.changes.poll(raft, now_ms))

    def on_answer(self, raft: Raft, peer: int, request: Request, answer: Answer, now_ms: int) -> None:
        if isinstance(request, BeginEpoch):
            raft.peers.pause(peer, "word", now_ms + raft.settings.begin_epoch_ms)

    def on_failure(self, raft: Raft, peer: int, request: Request, refused: bool, now_ms: int) -> None:
        raft.peers.pause(peer, "word", now_ms + max(raft.settings.retry_backoff_ms, raft.settings.eager_jitter_ms))

    def grants(self, raft: Raft, vote: Vote) -> bool:
        return False

    def on_appended(self, raft: Raft, now_ms: int) -> None:
        """There is more to fetch."""
        for token in list(self._waiting):
            self._serve(raft, token, self._waiting.pop(token))

    def on_synced(self, raft: Raft, now_ms: int) -> None:
        """More of this node's own log is durable."""
        self._move_watermark(raft, now_ms)

    def on_fetch(self, raft: Raft, token: int, fetch: Fetch, now_ms: int) -> None:
        self._drop_earlier(raft, fetch.replica)
        progress = self._progress(raft, fetch.replica, now_ms)
        fits = fit(raft.log, fetch.offset, fetch.last_epoch)
        if fits.diverging is None and fits.snapshot is None:
            progress.on_fetch(fetch.offset, raft.log.end_offset, now_ms)
            self._move_watermark(raft, now_ms)
        else:
            progress.fetched_ms = now_ms
        self._serve(raft, token, Waiting(fetch, now_ms + min(fetch.max_wait_ms, raft.settings.fetch_wait_ms)))

    def on_fetch_snapshot(self, raft: Raft, request: FetchSnapshot, now_ms: int) -> SnapshotAnswer:
        leader, snapshot = raft.address(), request.snapshot
        most = min(request.max_bytes, raft.settings.snapshot_max_bytes)
        found = raft.log.read_snapshot(snapshot, max(request.position, 0), most)
        if found is None:
            return SnapshotAnswer(leader, snapshot, ErrorCode.SNAPSHOT_NOT_FOUND)
        size, data = found
        if not 0 <= request.position < size:
            return SnapshotAnswer(leader, snapshot, ErrorCode.POSITION_OUT_OF_RANGE)
        self._progress(raft, request.replica, now_ms).fetched_ms = now_ms
        return SnapshotAnswer(leader, snapshot, ErrorCode.NONE, size, request.position, data)

    def successors(self, raft: Raft) -> tuple[Replica, ...]:
        """The other voters, those with the most of the log first."""
        ends = {one.replica: self._end_of(raft, one) for one in raft.others}
        return tuple(sorted(ends, key=lambda one: (-ends[one], one)))

    def progress_of(self, voter: Voter) -> Progress | None:
        """Where a voter's directory is not known, what fetched last with its id is the voter."""
        found = [one for replica, one in self.replicas.items() if voter.is_replica(replica)]
        return max(found, key=lambda one: one.fetched_ms, default=None)

    def observers(self, raft: Raft, now_ms: int) -> dict[Replica, Progress]:
        """Those that have not been silent for long: others are gone, or are voters under another directory."""
        return {
            replica: one
            for replica, one in self.replicas.items()
            if not raft.history.is_voter(replica) and now_ms - one.fetched_ms < OBSERVER_SESSION_MS
        }

    def _progress(self, raft: Raft, replica: Replica, now_ms: int) -> Progress:
        """A voter's is kept always; an observer's while there are not too many."""
        known = self.replicas.get(replica)
        if known is not None:
            return known
        if len(self.replicas) >= QUORUM_REPLICAS_MAX:
            self._forget_observers(raft, now_ms)
        known = Progress()
        is_other = replica.id >= 0 and replica.id != raft.me.id
        if is_other and (len(self.replicas) < QUORUM_REPLICAS_MAX or raft.history.is_voter(replica)):
            self.replicas[replica] = known
        return known

    def _forget_observers(self, raft: Raft, now_ms: int) -> None:
        known = self.observers(raft, now_ms)
        for replica in list(self.replicas):
            if replica not in known and not raft.history.is_voter(replica):
                del self.replicas[replica]

    def _drop_earlier(self, raft: Raft, replica: Replica) -> None:
        """A replica fetches once at a time: what it asked before, it has given up."""
        for token in [token for token, one in self._waiting.items() if one.fetch.replica == replica]:
            self._answer(raft, token, self._waiting.pop(token).fetch)

    def _serve(self, raft: Raft, token: int, waiting: Waiting) -> None:
        if raft.role is not self:
            raft.reply(token, FetchAnswer(raft.address(), ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return
        fetch = waiting.fetch
        fits = fit(raft.log, fetch.offset, fetch.last_epoch)
        nothing_new = fetch.offset >= raft.log.end_offset and fetch.high_watermark >= raft.high_watermark
        may_wait = fetch.max_wait_ms > 0 and fetch.replica in self.replicas
        if may_wait and nothing_new and fits.diverging is None and fits.snapshot is None:
            self._waiting[token] = waiting
        else:
            self._answer(raft, token, fetch)

    def _answer(self, raft: Raft, token: int, fetch: Fetch) -> None:
        log = raft.log
        fits = fit(log, fetch.offset, fetch.last_epoch)
        records = b""
        if fits.diverging is None and fits.snapshot is None and fetch.offset < log.end_offset:
            records = bytes(log.read(fetch.offset, min(fetch.max_bytes, raft.settings.fetch_max_bytes)))
        raft.reply(
            token,
            FetchAnswer(
                raft.address(),
                ErrorCode.NONE,
                raft.high_watermark,
                log.start_offset,
                fits.diverging,
                fits.snapshot,
                records,
            ),
        )

    def _move_watermark(self, raft: Raft, now_ms: int) -> None:
        ends = sorted((self._end_of(raft, one) for one in raft.history.voters), reverse=True)
        reached = ends[len(ends) // 2]
        if reached > self.epoch_start and reached > raft.high_watermark:
            raft.commit_to(reached)
            for token in list(self._waiting):
                self._serve(raft, token, self._waiting.pop(token))
            self.changes.on_committed(raft, now_ms)
            if not raft.may_stand:
                raft.resign(now_ms)

    def _end_of(self, raft: Raft, voter: Voter) -> int:
        """How much of the log is durable at a voter."""
        if voter.id == raft.me.id:
            return raft.log.synced_offset
        known = self.progress_of(voter)
        return known.end_offset if known is not None else -1

    def _quorum_until_ms(self, raft: Raft) -> int:
        """When this leader has to give up, as things are."""
        heard = sorted((self._heard_ms(raft, one) for one in raft.history.voters), reverse=True)
        return heard[raft.majority - 1] + raft.settings.check_quorum_ms

    def _heard_ms(self, raft: Raft, voter: Voter) -> int:
        if voter.id == raft.me.id:
            return NEVER
        known = self.progress_of(voter)
        return max(self.began_ms, known.fetched_ms if known is not None else 0)

    def _tell(self, raft: Raft, now_ms: int) -> int:
        """Tell voters that do not fetch who leads."""
        due_ms = NEVER
        for voter in raft.others:
            known = self.progress_of(voter)
            quiet_ms = known.fetched_ms + raft.settings.begin_epoch_ms if known is not None else now_ms
            if now_ms < quiet_ms:
                due_ms = min(due_ms, quiet_ms)
                continue
            due_ms = min(due_ms, self._tell_one(raft, voter, now_ms))
        return due_ms

    def tell_all(self, raft: Raft, now_ms: int) -> None:
        """Now, though they may have heard it a moment ago: whether they take it tells whether they are there."""
        for voter in raft.others:
            raft.peers.pause(voter.id, "word", now_ms)
            self._tell_one(raft, voter, now_ms)

    def _tell_one(self, raft: Raft, voter: Voter, now_ms: int) -> int:
        request = BeginEpoch(raft.epoch, raft.me.id, raft.me.endpoints, voter.replica)
        return raft.ask(voter.id, request, now_ms)


def first_records(history: VoterHistory, me: Voter, granting: Sequence[int]) -> list[Control]:
    """What a leader writes first: that it leads, and who votes, where the log does not say so yet or says of this node
    that it listens elsewhere."""
    message = LeaderChangeMessage(
        leader_id=me.id,
        voters=[VoterField(voter_id=one.id) for one in history.voters],
        granting_voters=[VoterField(voter_id=one) for one in sorted(granting)],
    )
    records: list[Control] = [(ControlType.LEADER_CHANGE, bytes(message.encode(0)))]
    if history.kraft_version == 0:
        return records
    now = tuple(me if one.id == me.id else one for one in history.voters)
    if not history.in_log or now != history.voters:
        version, _ = history.control_records()
        records += [version, (ControlType.KRAFT_VOTERS, encode_voters(now))]
    return records
