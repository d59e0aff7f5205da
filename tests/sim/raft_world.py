"""A quorum in memory: the real core on the real log, over a disk that loses what is not synced and a network that
loses, delays, doubles and reorders. One seed is one run. Invariants K1-K8 are checked after every event, on what the
event touched.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random as Chance

from penstock.broker.config import BrokerConfig
from penstock.broker.formatting import Identity, format_member
from penstock.broker.metadata_log import MetadataLog
from penstock.broker.metadata_replay import Replay
from penstock.core.raft.batches import build_metadata_batch
from penstock.core.raft.leader import Leading
from penstock.core.raft.raft import Raft
from penstock.core.raft.rpc import Answered, Event, Failed, Received, RemoveVoter, Send
from penstock.core.raft.settings import Settings
from penstock.core.raft.state import NOBODY, QuorumState
from penstock.core.raft.voters import Replica, Voter, VoterEndpoint, VoterHistory, Voters
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.records.batch import iterate
from penstock.sim.disk import SimDisk

CONFIG = BrokerConfig(
    {
        "node.id": "1",
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        "metadata.log.max.record.bytes.between.snapshots": "900",
        "metadata.max.retention.bytes": "500",
    }
)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class Seeded:
    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def bytes(self, count: int) -> bytes:
        return self._chance.randbytes(count)

    def below(self, bound: int) -> int:
        return self._chance.randrange(bound)


class WatchedLog(MetadataLog):
    """The real one, which tells the ghost what was voted and how much is durable."""

    ghost: Ghost
    replica: Replica
    surely: int = 0
    """Durable, as a crash has shown: it was there afterwards."""

    def save(self, quorum_state: QuorumState) -> None:
        self.ghost.on_save(self.replica, quorum_state)
        super().save(quorum_state)

    def truncate(self, offset: int) -> None:
        super().truncate(offset)
        self.surely = min(self.surely, self.end_offset)

    def _start_at(self, offset: int) -> None:
        super()._start_at(offset)
        self.surely = offset

    @property
    def durable_end(self) -> int:
        return max(self.log.synced_offset, self.surely)


class Node:
    def __init__(self, world: World, id_: int, voters: Voters) -> None:
        self.world = world
        self.id = id_
        self.alive = False
        self.life = 0
        self.durable_end = 0
        self.disk = SimDisk(world.chance)
        own = next((one for one in voters if one.id == id_), None)
        self.replica = own.replica if own is not None else Replica(id_, world.chance.randbytes(16))
        format_member(self.disk, Identity("c", id_, self.replica.directory_id), voters, 1)
        self.raft: Raft
        self.log: WatchedLog
        self.replay: Replay
        self.tokens: dict[int, tuple[int, int, int]] = {}

    def start(self) -> None:
        world = self.world
        self.alive, self.syncing, self.tokens = True, False, {}
        self.log = WatchedLog(self.disk, CONFIG, world.clock)
        self.log.ghost, self.log.replica = world.ghost, self.replica
        self.log.surely = self.log.end_offset
        self.replay = Replay(self.log)
        history = VoterHistory()
        found = self.log.begin()
        if found is not None:
            for kind, value in found.content.controls:
                history.learn(kind, value, found.id.offset - 1)
            self.replay.begin_at(found.content.records, found.id.offset, found.id.epoch)
        for offset, (kind, value) in self.log.controls_from(self.replay.next_offset):
            history.learn(kind, value, offset)
        me = Voter(self.id, self.replica.directory_id, (VoterEndpoint("CONTROLLER", "h", self.id),))
        self.raft = Raft(
            me,
            self.log,
            self.log.stored_state() or QuorumState(),
            history,
            world.settings,
            world.random,
            now_ms=world.clock.now_ms,
            contacts=tuple(-1 - one for one in world.nodes),
        )
        self.turn(self.raft.tick)

    def crash(self) -> None:
        self.alive = False
        self.life += 1
        self.durable_end = self.log.durable_end
        self.disk.crash()

    def replace_disk(self) -> None:
        """Everything is lost: what comes back is another replica, which has to be made a voter anew."""
        self.crash()
        self.world.lost[self.replica] = self.durable_end
        self.durable_end = 0
        self.disk = SimDisk(self.world.chance)
        self.replica = Replica(self.id, self.world.chance.randbytes(16))
        format_member(self.disk, Identity("c", self.id, self.replica.directory_id), (), 1)

    def turn(self, act: Callable[[int], None]) -> None:
        if not self.alive:
            return
        world = self.world
        act(world.clock.now_ms)
        ready = self.raft.ready()
        for reply in ready.replies:
            sender, life, correlation = self.tokens.pop(reply.token, (0, 0, 0))
            if sender:
                world.post(self.id, sender, life, Answered(correlation, reply.answer))
        for send in ready.sends:
            world.send(self, send)
        self._sync()
        self.replay.up_to(self.raft.high_watermark)
        self.raft.history.settle(self.replay.next_offset)
        world.ghost.look(self)
        if self.log.snapshots.due(self.replay.loader.image) and world.chance.random() < 0.3:
            self._snapshot()
        self._set_alarm()

    def receive(self, sender: int, life: int, send: Send) -> None:
        token = self.world.number()
        self.tokens[token] = sender, life, send.correlation
        self.turn(lambda now_ms: self.raft.step(Received(token, send.request), now_ms))

    def propose(self, name: str) -> None:
        if self.alive and self.raft.is_leading:
            record = TopicRecord(name=name, topic_id=name.encode().ljust(16, b"_"))
            buf = build_metadata_batch([record], {}, now_ms=1, leader_epoch=self.raft.epoch)
            self.turn(lambda now_ms: self._append(buf, now_ms))

    def _append(self, buf: bytearray, now_ms: int) -> None:
        self.raft.append(buf, now_ms)

    def _sync(self) -> None:
        work = None if self.syncing else self.log.log.unsynced()
        if work is not None:
            self.syncing = True
            life = self.life

            def done() -> None:
                if self.life == life:
                    work.run()
                    self.log.log.on_synced(work)
                    self.syncing = False
                    self.turn(self.raft.advance)

            self.world.after(self.world.chance.randrange(1, 30), done)

    def _snapshot(self) -> None:
        image = self.replay.loader.image
        self.log.snapshots.writing(image, self.raft.history.control_records(image.offset))()
        self.log.prune()

    def _set_alarm(self) -> None:
        life, due_ms = self.life, self.raft.deadline_ms
        wait_ms = max(due_ms - self.world.clock.now_ms, 1)
        if wait_ms < 60_000:
            self.world.after(wait_ms, lambda: self._ring(life, due_ms))

    def _ring(self, life: int, due_ms: int) -> None:
        if self.life == life and self.alive and self.raft.deadline_ms == due_ms:
            self.turn(self.raft.tick)


class Ghost:
    """What an observer of everything knows; no node can read it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.leaders: dict[int, tuple[int, int]] = {}
        self.votes: dict[tuple[Replica, int], Replica] = {}
        self.epochs: dict[Replica, int] = {}
        self.batches: dict[int, tuple[int, int]] = {}
        """base offset of a committed batch -> (epoch, crc)"""
        self.images: dict[int, list[str]] = {}
        self.committed_end = 0
        self.watermarks: dict[tuple[int, int], int] = {}
        self.looked: dict[tuple[int, int], int] = {}
        self.voters: dict[int, Voters] = {}

    def on_save(self, replica: Replica, state: QuorumState) -> None:
        assert state.leader_epoch >= self.epochs.get(replica, 0), "K2: an epoch went back"
        self.epochs[replica] = state.leader_epoch
        if state.voted_id != NOBODY:
            vote = Replica(state.voted_id, state.voted_directory_id)
            known = self.votes.setdefault((replica, state.leader_epoch), vote)
            assert known == vote, "K2: two votes in an epoch"

    def look(self, node: Node) -> None:
        raft, key = node.raft, (node.id, node.life)
        assert raft.epoch >= self.epochs.get(node.replica, 0), "K2: a node's epoch is behind its file"
        before = self.watermarks.get(key, 0)
        assert raft.high_watermark >= before, "K3: a watermark fell"
        self.watermarks[key] = raft.high_watermark
        if isinstance(raft.role, Leading):
            self._look_at_leader(node, raft, before)
        if raft.high_watermark > self.looked.get(key, -1):
            self._look_at_log(node, raft)
        log = node.log
        if log.start_offset > 0:
            newest = log.snapshot
            assert newest is not None and newest.offset >= log.start_offset, "K7: no snapshot reaches the log's start"
        assert log.end_offset >= raft.high_watermark, "K7: cut below the watermark"

    def _look_at_leader(self, node: Node, raft: Raft, before: int) -> None:
        key = (node.id, node.life)
        if raft.epoch not in self.leaders:
            self.leaders[raft.epoch] = key
            self._check_complete(node)
        assert self.leaders[raft.epoch] == key, "K1: two leaders in an epoch"
        if raft.high_watermark > before:
            durable = [self.world.durable_end(one) for one in raft.history.voters]
            reached = sum(1 for end in durable if end >= raft.high_watermark)
            assert reached >= raft.majority, f"K3: {durable} do not reach {raft.high_watermark}"
            self.committed_end = max(self.committed_end, raft.high_watermark)
        known = self.voters.get(raft.epoch)
        if known is not None and known != raft.history.voters:
            changed = {one.replica for one in known} ^ {one.replica for one in raft.history.voters}
            assert len(changed) <= 1, "K8: two voters changed at once"
            assert raft.is_leading, "K8: a change before the epoch's first entry was committed"
        self.voters[raft.epoch] = raft.history.voters

    def _check_complete(self, node: Node) -> None:
        """K5: a leader has everything that was committed."""
        last = max((base for base in self.batches), default=None)
        if last is None or last < node.log.start_offset:
            return
        assert node.log.end_offset > last, "K5: a leader without what was committed"
        assert node.log.log.epochs.at(last) == self.batches[last][0], "K5: a leader with something else in its place"

    def _look_at_log(self, node: Node, raft: Raft) -> None:
        """K4 and K6: what is committed is the same everywhere, and so is what it amounts to."""
        key = (node.id, node.life)
        at = max(self.looked.get(key, 0), node.log.start_offset)
        while at < raft.high_watermark:
            data = node.log.read(at, 1 << 20)
            for _, header in iterate(data, 0):
                if header.next_offset > raft.high_watermark or header.base_offset < at:
                    continue
                here = header.leader_epoch, header.crc
                known = self.batches.setdefault(header.base_offset, here)
                assert known == here, f"K4: another batch at {header.base_offset}"
            at = raft.high_watermark
        self.looked[key] = raft.high_watermark
        topics = list(node.replay.loader.image.topics)
        assert self.images.setdefault(node.replay.next_offset, topics) == topics, "K6: images differ"


class World:
    def __init__(self, seed: int, voters: int = 3, observers: int = 0, settings: Settings | None = None) -> None:
        self.chance = Chance(seed)
        self.random = Seeded(self.chance)
        self.clock = Clock()
        self.settings = settings or Settings(auto_join=True, eager=self.chance.random() < 0.5)
        self.ghost = Ghost(self)
        self.events = 0
        self.loss = 0.0
        self.healed = False
        self.lost: dict[Replica, int] = {}
        """replicas whose disk is gone -> how much of the log was durable there"""
        self.cut: set[tuple[int, int]] = set()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        first = tuple(
            Voter(one, self.chance.randbytes(16), (VoterEndpoint("CONTROLLER", "h", one),))
            for one in range(1, voters + 1)
        )
        self.nodes: dict[int, Node] = {}
        for one in range(1, voters + 1):
            self.nodes[one] = Node(self, one, first)
        for one in range(voters + 1, voters + observers + 1):
            self.nodes[one] = Node(self, one, ())
        self.voter_count = voters

    def number(self) -> int:
        self._number += 1
        return self._number

    def after(self, wait_ms: int, work: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.clock.now_ms + wait_ms, self.number(), work))

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> bool:
        end_ms = self.clock.now_ms + duration_ms
        while self._queue and self._queue[0][0] <= end_ms:
            self.clock.now_ms, _, work = heapq.heappop(self._queue)
            self.events += 1
            work()
            if until is not None and until():
                return True
        self.clock.now_ms = end_ms
        return until is None or until()

    def send(self, node: Node, send: Send) -> None:
        target = -1 - send.peer if send.peer < 0 else send.peer
        life = node.life
        if target == node.id or (node.id, target) in self.cut or self.chance.random() < self.loss:
            return
        for _ in range(2 if self.chance.random() < self.loss / 4 else 1):
            self.after(self._delay_ms(), lambda: self._arrive(node.id, life, target, send))

    def post(self, sender: int, target: int, life: int, event: Event) -> None:
        if (sender, target) in self.cut or self.chance.random() < self.loss:
            return

        def arrive() -> None:
            node = self.nodes[target]
            if node.life == life:
                node.turn(lambda now_ms: node.raft.step(event, now_ms))

        self.after(self._delay_ms(), arrive)

    def _arrive(self, sender: int, life: int, target: int, send: Send) -> None:
        node = self.nodes[target]
        if node.alive:
            node.receive(sender, life, send)
        else:
            self.post(target, sender, life, Failed(send.correlation, refused=True))

    def _delay_ms(self) -> int:
        return self.chance.randrange(1, 200) if self.chance.random() < 0.03 else self.chance.randrange(1, 12)

    def durable_end(self, voter: Voter) -> int:
        """Of a voter whose disk was lost: as much as it had before. That it told the truth is all a leader can know."""
        node = self.nodes[voter.id]
        if not voter.is_replica(node.replica):
            return self.lost.get(voter.replica, 0)
        return node.log.durable_end if node.alive else node.durable_end

    def start_all(self) -> None:
        for node in self.nodes.values():
            if not node.alive:
                node.start()

    def leaders(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.alive and node.raft.is_leading]

    def load(self, every_ms: int, name: str) -> None:
        """Propose to whoever takes itself for the leader, again and again."""
        number = self.number()
        for node in self.leaders():
            node.propose(f"{name}-{number}-{node.id}")
        self.after(every_ms, lambda: self.load(every_ms, name))

    def hurt(self, every_ms: int) -> None:
        """One fault, or the end of one; a majority may be gone for a while."""
        if self.healed:
            return
        node = self.chance.choice(list(self.nodes.values()))
        kind = self.chance.randrange(10)
        if kind < 4:
            if node.alive:
                node.crash()
            else:
                node.start()
        elif kind < 6:
            self._part(node.id)
        elif kind < 7:
            self.cut.clear()
        elif kind < 8:
            self.loss = self.chance.choice([0.0, 0.0, 0.1, 0.3])
        elif kind < 9:
            self._remove_some_voter()
        elif self._may_lose_a_disk(node):
            node.replace_disk()
        self.after(self.chance.randrange(1, every_ms * 2), lambda: self.hurt(every_ms))

    def heal(self) -> None:
        self.healed = True
        self.loss = 0.0
        self.cut.clear()
        self.start_all()

    def _part(self, id_: int) -> None:
        for other in self.nodes:
            if other != id_:
                self.cut.add((id_, other))
                if self.chance.random() < 0.7:
                    self.cut.add((other, id_))

    def _remove_some_voter(self) -> None:
        """By an operator who looks first: not while a voter is gone for good, or a majority might go with it."""
        for node in self.leaders():
            voters = node.raft.history.voters
            if len(voters) > 2 and all(one.is_replica(self.nodes[one.id].replica) for one in voters):
                victim = self.chance.choice(voters).replica
                token = self.number()
                step = Received(token, RemoveVoter(victim))
                node.turn(lambda now_ms, node=node, step=step: node.raft.step(step, now_ms))

    def _may_lose_a_disk(self, node: Node) -> bool:
        """A lost disk is a lost copy: of what is committed, a majority of the voters must still have theirs."""
        leaders = self.leaders()
        if not node.alive or not leaders or len(self.nodes) < 3:
            return False
        others = [one for one in leaders[-1].raft.history.voters if one.id != node.id]
        having = [one for one in others if one.is_replica(self.nodes[one.id].replica)]
        having = [one for one in having if self.durable_end(one) >= self.ghost.committed_end]
        return len(having) >= leaders[-1].raft.majority
