"""One node of a quorum, by hand: what comes in is written here, what goes out is looked at."""

from __future__ import annotations

from random import Random as Chance
from typing import Any

from penstock.broker.formatting import Identity, format_member
from penstock.broker.metadata_log import MetadataLog
from penstock.core.raft.batches import build_metadata_batch
from penstock.core.raft.raft import Raft
from penstock.core.raft.rpc import Answer, Answered, Failed, Fetch, Leader, Received, Request, Send, Vote, VoteAnswer
from penstock.core.raft.settings import Settings
from penstock.core.raft.snapshot import encode_snapshot
from penstock.core.raft.state import QuorumState
from penstock.core.raft.voters import Replica, Voter, VoterEndpoint, VoterHistory
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.records.batch import read_header
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk
from tests.sim.raft_world import CONFIG, Clock, Seeded


def voter(id_: int) -> Voter:
    return Voter(id_, bytes([id_]) * 16, (VoterEndpoint("CONTROLLER", f"host{id_}", 9000 + id_),))


def later_snapshot(value: bytes) -> bytes:
    """With a record that this release does not know, its checksums all right."""
    data = encode_snapshot([], {}, now_ms=5)
    header_bytes = read_header(data, 0).size_bytes
    return data[:header_bytes] + build_batch([Record.of(None, value, 5)], base_offset=1) + data[header_bytes:]


class Bench:
    """Node 1 of the voters 1 to `voters`."""

    def __init__(self, voters: int = 3, settings: Settings | None = None, *, dynamic: bool = True) -> None:
        self.settings = settings or Settings(eager=False)
        self.disk = SimDisk(Chance(1))
        self.clock = Clock()
        self.voters = tuple(voter(id_) for id_ in range(1, voters + 1))
        self.dynamic = dynamic
        format_member(self.disk, Identity("c", 1, voter(1).directory_id), self.voters if dynamic else (), 1)
        self.sends: list[Send] = []
        self.token = 0
        self.start()

    def start(self) -> None:
        self.log = MetadataLog(self.disk, CONFIG, self.clock)
        static = () if self.dynamic else tuple(one._replace(directory_id=bytes(16)) for one in self.voters)
        history = VoterHistory(static)
        found = self.log.begin()
        for kind, value in found.content.controls if found is not None else ():
            history.learn(kind, value, found.id.offset - 1)
        for offset, (kind, value) in self.log.controls_from(found.id.offset if found is not None else 0):
            history.learn(kind, value, offset)
        stored = self.log.stored_state() or QuorumState()
        random = Seeded(Chance(3))
        self.raft = Raft(voter(1), self.log, stored, history, self.settings, random, now_ms=self.clock.now_ms)
        self.tick()
        self.raft.ready()  # it has begun to ask who leads

    def restart(self) -> None:
        self.disk.crash()
        self.start()

    def tick(self, wait_ms: int = 0) -> None:
        self.clock.now_ms += wait_ms
        self.raft.tick(self.clock.now_ms)

    def sync(self) -> None:
        work = self.log.log.unsynced()
        if work is not None:
            work.run()
            self.log.log.on_synced(work)
        self.raft.advance(self.clock.now_ms)

    def ask(self, request: Request) -> Any:
        """What is answered at once; None where the answer has to wait."""
        self.token += 1
        self.raft.step(Received(self.token, request), self.clock.now_ms)
        return self.replies().get(self.token)

    def replies(self) -> dict[int, Answer]:
        ready = self.raft.ready()
        self.sends += ready.sends
        return {one.token: one.answer for one in ready.replies}

    def sent(self, kind: type[Request], peer: int | None = None) -> list[Any]:
        """Requests of a kind that have left since the last look."""
        self.sends += self.raft.ready().sends
        found = [one for one in self.sends if isinstance(one.request, kind) and peer in (None, one.peer)]
        self.sends = [one for one in self.sends if one not in found]
        return found

    def answer(self, send: Send, answer: Answer) -> None:
        self.raft.step(Answered(send.correlation, answer), self.clock.now_ms)

    def fail(self, send: Send, *, refused: bool) -> None:
        self.raft.step(Failed(send.correlation, refused), self.clock.now_ms)

    def win(self) -> None:
        """Through pre-vote and vote to leading, with every other voter's consent."""
        while self.raft.role.name != "leader":
            self.tick(10)
            for send in self.sent(Vote):
                self.answer(send, VoteAnswer(Leader(-1, self.raft.epoch), granted=True))

    def lead(self) -> None:
        """Leading, with the epoch's first entry committed."""
        self.win()
        self.sync()
        for one in self.raft.others:
            self.fetch(one.id)
        self.raft.ready()
        self.sends.clear()
        assert self.raft.is_leading or len(self.voters) == 1

    def fetch(self, id_: int, offset: int | None = None, **more: Any) -> Any:
        at = self.log.end_offset if offset is None else offset
        last_epoch = more.pop("last_epoch", self.log.log.epochs.at(at - 1) if at else 0)
        replica = more.pop("replica", voter(id_).replica)
        return self.ask(Fetch(more.pop("epoch", self.raft.epoch), replica, at, last_epoch, **more))

    def propose(self, name: str) -> int:
        record = TopicRecord(name=name, topic_id=name.encode().ljust(16, b"_"))
        batch = build_metadata_batch([record], {}, now_ms=1, leader_epoch=self.raft.epoch)
        return self.raft.append(batch, self.clock.now_ms)

    def vote(self, candidate: int, epoch: int, *, pre_vote: bool = False, end: tuple[int, int] | None = None) -> Any:
        last_epoch, end_offset = end or (self.log.last_epoch, self.log.end_offset)
        key = Replica(1, voter(1).directory_id)
        return self.ask(Vote(epoch, voter(candidate).replica, key, last_epoch, end_offset, pre_vote=pre_vote))
