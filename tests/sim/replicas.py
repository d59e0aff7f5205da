"""Three copies of one partition, a network that delays, doubles and loses, disks that forget, and a controller that
knows the rules: everything that replication must stand, in one loop drawn from a seed.

Ghost state, which no replica sees: what was committed at each offset, how far, and what clients were told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ids import TopicPartition
from penstock.core.log.config import LogConfig
from penstock.core.log.epochs import LeaderEpochs
from penstock.core.log.log import Log
from penstock.core.metadata.image import NO_LEADER, Broker
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.fetch_session import FetchPartition, FetchSession
from penstock.core.replication.following import cut_at, restart_at
from penstock.core.replication.isr import IsrAnswer, IsrChange
from penstock.core.replication.leading import Cluster
from penstock.core.replication.partition import Fetched, Partition
from penstock.records.batch import iterate
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NODES = (1, 2, 3)
MIN_ISR = 2
NAME = TopicPartition("t", 0)
LAG_MAX_MS = 200


@dataclass(slots=True)
class Fetch:
    sender: int
    life: int
    """the broker epoch of the sender"""
    to: int
    offset: int
    leader_epoch: int
    last_epoch: int
    log_start: int
    number: int


@dataclass(slots=True)
class Answer:
    to: int
    life: int
    number: int
    leader_epoch: int
    error: ErrorCode
    fetched: Fetched | None
    data: bytearray
    high_watermark: int
    bounds: tuple[int, int]


@dataclass(slots=True)
class Alter:
    sender: int
    life: int
    change: IsrChange


@dataclass(slots=True)
class Altered:
    to: int
    life: int
    change: IsrChange
    answer: IsrAnswer


class Controller:
    """Decides at once; its decisions reach the nodes when the network lets them."""

    def __init__(self) -> None:
        self.partition = Described(NODES, NODES, 1, 0, 0)
        self.brokers = {node: Broker(node, node, b"i" * 16, (), (), None, False) for node in NODES}
        self.versions: list[tuple[Described, dict[int, Broker]]] = [(self.partition, dict(self.brokers))]
        self._next_epoch = 10

    def register(self, node: int, *, clean: bool) -> int:
        """A broker is back. One that may have lost something is in sync no more (KIP-966)."""
        self._next_epoch += 1
        self.brokers[node] = self.brokers[node]._replace(epoch=self._next_epoch, fenced=False)
        now = self.partition
        if not clean:
            now = now._replace(isr=_without(now.isr, node), eligible=_without(now.eligible, node))
        self._settle(now)
        return self._next_epoch

    def fence(self, node: int) -> None:
        self.brokers[node] = self.brokers[node]._replace(fenced=True)
        now = self.partition
        isr, eligible = _without(now.isr, node), now.eligible
        if node in now.isr and len(isr) < MIN_ISR:
            eligible = (*eligible, node)
        self._settle(now._replace(isr=isr, eligible=eligible))

    def alter(self, request: Alter) -> IsrAnswer:
        change, now = request.change, self.partition
        if request.life != self.brokers[request.sender].epoch:
            return IsrAnswer(ErrorCode.STALE_BROKER_EPOCH)
        if change.leader_epoch != now.leader_epoch or request.sender != now.leader:
            return IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH)
        if change.partition_epoch != now.partition_epoch:
            return IsrAnswer(ErrorCode.INVALID_UPDATE_VERSION)
        for member, epoch in change.isr:
            if self.brokers[member].fenced or epoch not in (-1, self.brokers[member].epoch):
                return IsrAnswer(ErrorCode.INELIGIBLE_REPLICA)
        gone = tuple(node for node in now.isr if node not in change.members)
        eligible = tuple(node for node in now.eligible if node not in change.members)
        if len(change.members) < MIN_ISR:
            eligible = (*eligible, *gone)
        self._settle(now._replace(isr=change.members, eligible=eligible))
        now = self.partition
        return IsrAnswer(ErrorCode.NONE, now.leader_epoch, now.partition_epoch, now.isr)

    def elect(self, node: int) -> None:
        """As an operator may: any member in sync."""
        if node in self.partition.isr and not self.brokers[node].fenced and node != self.partition.leader:
            self._publish(self.partition._replace(leader=node, leader_epoch=self.partition.leader_epoch + 1))

    def _settle(self, now: Described) -> None:
        if len(now.isr) >= MIN_ISR:
            now = now._replace(eligible=())
        if now.leader not in now.isr or self.brokers[now.leader].fenced:
            able = [node for node in (*now.isr, *now.eligible) if not self.brokers[node].fenced]
            leader = able[0] if able else NO_LEADER
            if leader != NO_LEADER and leader not in now.isr:
                now = now._replace(isr=(*now.isr, leader), eligible=_without(now.eligible, leader))
            if leader != now.leader or leader == NO_LEADER:
                now = now._replace(leader=leader, leader_epoch=now.leader_epoch + 1)
        self._publish(now)

    def _publish(self, now: Described) -> None:
        if now != self.partition:
            now = now._replace(partition_epoch=self.partition.partition_epoch + 1)
        self.partition = now
        self.versions.append((now, dict(self.brokers)))


def _without(members: tuple[int, ...], node: int) -> tuple[int, ...]:
    return tuple(one for one in members if one != node)


@dataclass(slots=True)
class Node:
    id: int
    disk: SimDisk
    config: LogConfig
    up: bool = True
    life: int = 0
    version: int = 0
    """how much of the metadata it knows"""
    recovery_point: int = 0
    watermark: int = 0
    """its checkpoints"""
    number: int = 0
    waiting_for: int = -1
    """the fetch that it waits for, -1: none"""
    partition: Partition = field(init=False)

    def open(self, now_ms: int) -> None:
        log = Log.open(self.disk, str(NAME), self.config, now_ms=now_ms, recovery_point=self.recovery_point)
        assert not log.damage, log.damage
        cluster = Cluster(self.id, LAG_MAX_MS)
        cluster.now_ms = now_ms
        self.watermark = min(self.watermark, log.end_offset)
        self.partition = Partition(NAME, b"t" * 16, log, cluster, high_watermark=self.watermark)
        self.waiting_for = -1

    def sync(self) -> None:
        work = self.partition.log.unsynced()
        if work is not None:
            work.run()
            self.partition.log.on_synced(work)

    def cut(self, offset: int) -> None:
        point = self.partition.log.truncation_point(offset)
        self.recovery_point, self.watermark = min(self.recovery_point, point), min(self.watermark, point)
        self.partition.cut(offset)


def batches(log: Log, start: int = 0) -> list[tuple[int, int, bytes]]:
    """(base offset, epoch, bytes) of what the log holds."""
    found: list[tuple[int, int, bytes]] = []
    offset = max(start, log.start_offset)
    while offset < log.end_offset:
        data = b"".join(piece.read() for piece in log.read(offset, 1 << 30, limit_offset=log.end_offset))
        for at, header in iterate(data):
            size = header.length + 12
            if header.last_offset >= start:
                found.append((header.base_offset, header.leader_epoch, data[at : at + size]))
            offset = header.next_offset
    return found


class World:
    def __init__(self, seed: int, *, flush: bool = False) -> None:
        self.random = Random(seed)
        self.flush = flush
        self.now_ms = 1_000
        self.controller = Controller()
        config = LogConfig(
            flush_messages=1 if flush else 1 << 62,
            min_insync_replicas=MIN_ISR,
            segment_bytes=2_000,
            index_interval_bytes=200,
            retention_ms=-1,
        )
        self.nodes = {node: Node(node, SimDisk(Random(seed * 7 + node)), config, life=node) for node in NODES}
        self.messages: list[Fetch | Answer | Alter | Altered] = []
        self.committed: dict[int, bytes] = {}
        """base offset > batch, for everything that any leader has called committed"""
        self.true_hw = 0
        self.told_latest = 0
        self.watermarks: dict[tuple[int, int], int] = {}
        """by node and leader epoch"""
        self.may_lose = MIN_ISR - 1
        """crashes that take un-synced records before the next time that all copies are level"""
        self.appended = self.cuts = self.lossy = self.elections = 0
        for node in self.nodes.values():
            node.open(self.now_ms)
            self.apply(node)

    def run(self, events: int) -> None:
        for _ in range(events):
            self.step()
        self.heal()

    def step(self) -> None:
        self.now_ms += self.random.randrange(12)
        weights = {
            self.deliver: 40,
            self.fetch: 30,
            self.produce: 20,
            self.learn: 12,
            self.sync: 10,
            self.checkpoint: 3,
            self.look_for_laggards: 3,
            self.read: 5,
            self.ask_latest: 3,
            self.crash: 2,
            self.restart: 6,
            self.elect: 1,
            self.give_up: 4,
            self.ask_again: 2,
        }
        (action,) = self.random.choices(list(weights), list(weights.values()))
        action()

    def any_up(self) -> Node | None:
        up = [node for node in self.nodes.values() if node.up]
        return self.random.choice(up) if up else None

    def deliver(self) -> None:
        """In any order; some are lost, some come twice."""
        if not self.messages:
            return
        at = self.random.randrange(len(self.messages))
        chance = self.random.random()
        message = self.messages[at] if chance < 0.08 else self.messages.pop(at)
        if 0.08 <= chance < 0.14:
            return
        if isinstance(message, Fetch):
            self.answer(message)
        elif isinstance(message, Answer):
            self.take(message)
        elif isinstance(message, Alter):
            answer = self.controller.alter(message)
            self.messages.append(Altered(message.sender, message.life, message.change, answer))
        else:
            self.altered(message)

    def fetch(self) -> None:
        node = self.any_up()
        if node is not None and node.waiting_for < 0:
            self.send_fetch(node)

    def send_fetch(self, node: Node) -> None:
        partition = node.partition
        if partition.following is None or partition.following.leader_id == NO_LEADER:
            return
        own = partition.log
        if self.flush and own.synced_offset < own.end_offset:
            return
        node.number += 1
        node.waiting_for = node.number
        self.messages.append(
            Fetch(
                node.id,
                node.life,
                partition.following.leader_id,
                own.end_offset,
                partition.leader_epoch,
                own.epochs.latest,
                own.start_offset,
                node.number,
            )
        )

    def give_up(self) -> None:
        """A follower's fetch has taken too long."""
        node = self.any_up()
        if node is not None:
            node.waiting_for = -1

    def ask_again(self) -> None:
        """The controller's answer has taken too long."""
        for node in self.nodes.values():
            leading = node.partition.leading
            if node.up and leading is not None and leading.pending is not None:
                self.messages.append(Alter(node.id, node.life, leading.pending))

    def answer(self, request: Fetch) -> None:
        leader = self.nodes[request.to]
        if not leader.up:
            return
        wanted = FetchPartition(FetchSession(1, True, self.now_ms), b"t" * 16, 0)
        wanted.fetch_offset, wanted.leader_epoch = request.offset, request.leader_epoch
        wanted.last_fetched_epoch, wanted.log_start_offset = request.last_epoch, request.log_start
        partition, error, fetched, data = leader.partition, ErrorCode.NONE, None, bytearray()
        try:
            diverging = partition.meet(wanted, request.sender, request.life)
            if diverging is None:
                change = partition.heard(wanted, request.life, self.now_ms)
                if change is not None:
                    self.messages.append(Alter(leader.id, leader.life, change))
                self.advance(leader)
                fetched = partition.copy(wanted, 400, True)
            else:
                fetched = partition.standing(diverging)
            data = bytearray(b"".join(piece.read() for piece in fetched.slices))
        except KafkaError as fault:
            error = fault.code
        bounds = (partition.log.start_offset, partition.log.end_offset)
        self.messages.append(
            Answer(
                request.sender,
                request.life,
                request.number,
                request.leader_epoch,
                error,
                fetched,
                data,
                partition.high_watermark,
                bounds,
            )
        )

    def take(self, answer: Answer) -> None:
        node = self.nodes[answer.to]
        partition = node.partition
        if not node.up or node.life != answer.life or node.waiting_for != answer.number:
            return
        node.waiting_for = -1
        if partition.following is None or partition.leader_epoch != answer.leader_epoch:
            return
        if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            offset, whole = restart_at(partition.log, *answer.bounds)
            assert not whole, "nothing is deleted here"
            self.cut(node, offset)
        if answer.fetched is None:
            return
        if answer.fetched.diverging is not None:
            self.cut(node, cut_at(partition.log, *answer.fetched.diverging))
        else:
            if answer.data:
                partition.accept(answer.data, 0, len(answer.data), now_ms=self.now_ms)
                if self.flush and self.random.random() < 0.7:
                    node.sync()
            partition.told(answer.high_watermark, 0)
        self.check_log(node)
        if self.random.random() < 0.8:
            self.send_fetch(node)

    def cut(self, node: Node, offset: int) -> None:
        """R14: nothing that is committed is cut."""
        own = node.partition.log
        if offset < own.end_offset:
            self.cuts += 1
            for base, _, batch in batches(own, offset):
                assert self.committed.get(base) != batch, f"R14: node {node.id} cuts {base}, which is committed"
        node.cut(offset)
        self.check_log(node)

    def altered(self, message: Altered) -> None:
        node = self.nodes[message.to]
        if not node.up or node.life != message.life:
            return
        again = node.partition.answered(message.change, message.answer)
        if again is not None:
            self.messages.append(Alter(node.id, node.life, again))
        self.advance(node)

    def produce(self) -> None:
        node = self.any_up()
        if node is None or node.partition.leading is None:
            return
        self.appended += 1
        records = [Record.of(b"k", b"%d" % self.appended, self.now_ms)] * self.random.choice((1, 1, 3))
        batch = bytearray(build_batch(records))
        end = node.partition.log.end_offset
        try:
            appended = node.partition.append(
                batch, 0, len(batch), now_ms=self.now_ms, to_all=self.random.random() < 0.7
            )
        except KafkaError as fault:
            assert fault.code is ErrorCode.NOT_ENOUGH_REPLICAS
            return
        assert appended.first_offset == end and appended.last_offset == end + len(records) - 1, "R14: dense"
        self.advance(node)

    def sync(self) -> None:
        node = self.any_up()
        if node is not None:
            node.sync()
            self.advance(node)

    def checkpoint(self) -> None:
        node = self.any_up()
        if node is not None:
            node.recovery_point = node.partition.log.recovery_point
            node.watermark = node.partition.high_watermark

    def look_for_laggards(self) -> None:
        node = self.any_up()
        if node is not None:
            node.partition.cluster.now_ms = self.now_ms
            change = node.partition.laggards()
            if change is not None:
                self.messages.append(Alter(node.id, node.life, change))

    def learn(self) -> None:
        node = self.any_up()
        if node is not None and node.version < len(self.controller.versions) - 1:
            node.version = self.random.randrange(node.version + 1, len(self.controller.versions))
            self.apply(node)

    def apply(self, node: Node) -> None:
        described, brokers = self.controller.versions[node.version]
        partition = node.partition
        partition.cluster.brokers, partition.cluster.now_ms = brokers, self.now_ms
        if described.leader == node.id:
            self.elections += partition.lead(described)
            self.advance(node)
        elif partition.follow(described):
            node.waiting_for = -1

    def elect(self) -> None:
        self.controller.elect(self.random.choice(NODES))
        self.check_candidates()

    def crash(self) -> None:
        node = self.any_up()
        if node is None:
            return
        node.up = False
        if self.flush or (self.may_lose and self.random.random() < 0.4):
            self.may_lose -= 0 if self.flush else 1
            self.lossy += 1
            node.disk.crash()
            node.version = -node.version - 1  # what it lost is known when it registers
        if self.random.random() < 0.8:
            self.controller.fence(node.id)
            self.check_candidates()

    def restart(self) -> None:
        down = [node for node in self.nodes.values() if not node.up]
        if not down:
            return
        node = self.random.choice(down)
        lossy = node.version < 0
        node.version = -node.version - 1 if lossy else node.version
        if self.controller.partition.leader == node.id:
            self.controller.fence(node.id)  # its session is over before the next begins
        node.open(self.now_ms)
        node.up = True
        self.check_log(node)
        node.life = self.controller.register(node.id, clean=not lossy or self.flush)
        node.version = len(self.controller.versions) - 1
        self.apply(node)
        self.check_candidates()

    def read(self) -> None:
        """R13: what a consumer sees at an offset, on whichever copy, stays there."""
        node = self.any_up()
        if node is None:
            return
        partition = node.partition
        offset = self.random.randrange(partition.log.start_offset, partition.log.end_offset + 1)
        wanted = FetchPartition(FetchSession(1, True, 0), b"t" * 16, 0)
        wanted.fetch_offset = offset
        fetched = partition.read(wanted, 600, min_one=True, committed_only=False)
        data = b"".join(piece.read() for piece in fetched.slices)
        for at, header in iterate(data):
            batch = data[at : at + header.length + 12]
            known = self.committed.get(header.base_offset)
            assert known == batch, f"R13: node {node.id} serves {header.base_offset}, which is not what was committed"

    def ask_latest(self) -> None:
        """R7: of the leader that the client knows by its epoch, the end never goes back."""
        now = self.controller.partition
        if now.leader == NO_LEADER or not self.nodes[now.leader].up:
            return
        partition = self.nodes[now.leader].partition
        try:
            partition.check_epoch(now.leader_epoch)
            latest = partition.latest_for_clients(partition.high_watermark)
        except KafkaError as fault:
            assert fault.code in (
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                ErrorCode.OFFSET_NOT_AVAILABLE,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
            return
        assert latest >= self.told_latest, f"R7: {latest} after {self.told_latest}"
        self.told_latest = latest

    def advance(self, node: Node) -> None:
        """What a leader calls committed is noted, and must be what was called so before (R4, R6)."""
        partition = node.partition
        before = partition.high_watermark
        moved = partition.advance()
        leading = partition.leading
        if leading is None:
            return
        key = (node.id, partition.leader_epoch)
        assert partition.high_watermark >= self.watermarks.get(key, 0), "R6: a leader's watermark went back"
        self.watermarks[key] = partition.high_watermark
        partition.check()
        if not moved:
            return
        assert len(leading.isr) >= MIN_ISR, "R6: committed with too few copies"
        for base, _, batch in batches(partition.log, before):
            if base < partition.high_watermark:
                known = self.committed.setdefault(base, batch)
                assert known == batch, f"R4: two records were committed at {base}"
        self.true_hw = max(self.true_hw, partition.high_watermark)
        self.check_candidates()

    def check_candidates(self) -> None:
        """R2, R3, R11: whoever may be elected has all that is committed. R5: the leader waits for all of them."""
        now = self.controller.partition
        for member in (*now.isr, *now.eligible):
            node = self.nodes[member]
            if node.up:
                held = {base: batch for base, _, batch in batches(node.partition.log)}
                missing = [base for base, batch in self.committed.items() if held.get(base) != batch]
                assert not missing, f"R3: node {member}, in {now}, lacks {missing}"
        leader = self.nodes.get(now.leader)
        if leader is not None and leader.up and leader.partition.leader_epoch == now.leader_epoch:
            leading = leader.partition.leading
            assert leading is not None
            if leading.partition_epoch == now.partition_epoch:
                assert not [one for one in now.isr if one not in leading.maximal_isr], "R5"

    def check_log(self, node: Node) -> None:
        """R1, R14: offsets and epochs ascend. R16: the epochs are those of the batches."""
        log = node.partition.log
        rebuilt = LeaderEpochs()
        offset, latest = log.start_offset, -1
        for base, epoch, batch in batches(log):
            assert base == offset and epoch >= latest, f"R14: node {node.id} has a hole or an old epoch at {base}"
            offset, latest = base + int.from_bytes(batch[23:27], "big") + 1, epoch
            if epoch > rebuilt.latest:
                rebuilt.assign(epoch, base)
        assert offset == log.end_offset
        assert log.epochs.entries() == rebuilt.entries(), "R16"
        ends = {one.partition.log.end_offset for one in self.nodes.values()}
        if ends == {self.true_hw} and sorted(self.controller.partition.isr) == list(NODES):
            self.level()

    def level(self) -> None:
        """All copies have everything: make it durable, and another crash may lose what comes now."""
        if not self.flush and all(node.up for node in self.nodes.values()):
            for node in self.nodes.values():
                node.sync()
            self.may_lose = MIN_ISR - 1

    def heal(self) -> None:
        """All nodes up, nothing lost any more: the copies must become one, with everything committed (L3, L4)."""
        while not all(node.up for node in self.nodes.values()):
            self.restart()
        for _ in range(400):
            self.now_ms += 20
            for node in self.nodes.values():
                if node.up:
                    node.version = len(self.controller.versions) - 1
                    self.apply(node)
                    node.sync()
                    self.advance(node)
                    node.waiting_for = -1
                    self.send_fetch(node)
            self.ask_again()
            while self.messages:
                message = self.messages.pop(0)
                if isinstance(message, Fetch):
                    self.answer(message)
                elif isinstance(message, Answer):
                    self.take(message)
                elif isinstance(message, Alter):
                    self.altered(Altered(message.sender, message.life, message.change, self.controller.alter(message)))
                else:
                    self.altered(message)
            if self.is_whole():
                return
        ends = {node.id: (node.partition.log.end_offset, node.partition.high_watermark) for node in self.nodes.values()}
        raise AssertionError(f"the copies do not become one: {self.controller.partition}, {ends}")

    def is_whole(self) -> bool:
        marks = {node.partition.high_watermark for node in self.nodes.values()}
        ends = {node.partition.log.end_offset for node in self.nodes.values()}
        return sorted(self.controller.partition.isr) == list(NODES) and len(ends) == 1 and marks == ends
