"""The metadata quorum's shell: `core/raft` with a clock, a disk, other nodes to talk to and threads that sync.

Every event is one turn: the core decides, then what it wants is done (messages, a sync), then what became committed is
replayed and published, in the order of the log. A node that is the only voter elects itself in its first turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.base.errors import ErrorCode, KafkaError, shortened
from penstock.base.ports import Clock, Disk, Jobs, Random
from penstock.broker.config import BrokerConfig, ConfigFault
from penstock.broker.formatting import Identity, bootstrap_records, open_directory
from penstock.broker.journal import Journal
from penstock.broker.metadata_log import MetadataLog
from penstock.broker.metadata_replay import Follower, Own, Replay
from penstock.broker.metadata_upkeep import MetadataUpkeep
from penstock.broker.proposals import Proposals
from penstock.broker.quorum_config import configured_voters, controller_endpoints, quorum_settings
from penstock.core.controller.features import SUPPORTED
from penstock.core.metadata.image import Image
from penstock.core.raft.batches import MetadataBatch, build_metadata_batch
from penstock.core.raft.peers import NEVER
from penstock.core.raft.raft import Raft
from penstock.core.raft.resigned import Resigned
from penstock.core.raft.rpc import NO_LEADER, AddVoter, Answer, Answered, ChangeAnswer, Failed, Received, Request, Send
from penstock.core.raft.state import QuorumState
from penstock.core.raft.voters import Voter, VoterEndpoint, VoterHistory
from penstock.protocol.generated.abort_transaction_record import AbortTransactionRecord
from penstock.protocol.message import Message

if TYPE_CHECKING:
    from penstock.broker.quorum_peers import QuorumPeers

log = Journal(__name__)

_RESIGN_MS = 1_000
"""for so long a leader that stops tries to tell the others"""

_STOPPING = "the node is stopping"

OnLeadership = Callable[[bool, int], None]


def _talking() -> Any:
    return import_module("penstock.broker.quorum_peers")


class Quorum:
    """Invariant: `image` is what the batches below the high watermark say, and those are durable on a majority."""

    def __init__(
        self,
        disk: Disk,
        config: BrokerConfig,
        clock: Clock,
        random: Random,
        jobs: Jobs,
        identity: Identity,
        endpoints: tuple[VoterEndpoint, ...],
    ) -> None:
        self.identity = identity
        self.controller_endpoints = endpoints
        """Where this node's controller listens."""
        self._disk = disk
        self._clock = clock
        self._log = MetadataLog(disk, config, clock)
        self._upkeep = MetadataUpkeep(self._log, jobs, self._synced)
        self._replay = Replay(self._log)
        self._config = config
        self._random = random
        self._peers: QuorumPeers | None = None
        self._raft = self._begin(config, random)
        self._tokens = 0
        self._asked: dict[int, asyncio.Future[Answer]] = {}
        """requests of other nodes that are not answered yet, by token"""
        self._proposals = Proposals()
        self._on_leadership: list[OnLeadership] = []
        self._led_epoch: int | None = None
        """the epoch that this node leads as far as others have been told"""
        self._prepared: tuple[int, int] | None = None
        """(epoch, offset): what this node writes first when it leads ends there"""
        self._changed = asyncio.Event()
        self._publishing = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms = NEVER
        self._failure: str | None = None
        self.on_failure: Callable[[str], None] = lambda reason: None
        """told once, when this node can take part no more: its process must end, as a controller that is deaf still
        takes itself for what it was"""
        self._closed = False

    @staticmethod
    async def open(
        disk: Disk,
        config: BrokerConfig,
        clock: Clock,
        random: Random,
        jobs: Jobs,
        *,
        cluster_id: str | None = None,
        endpoints: tuple[VoterEndpoint, ...] | None = None,
    ) -> Quorum:
        """Begin to take part. Where this node is the only voter it leads afterwards; otherwise others have to be able
        to reach its controller listener first: see `settled`. `endpoints`: where that listens, if not as configured.
        ConfigFault where the directory is not this node's, or not readable."""
        endpoints = controller_endpoints(config) if endpoints is None else endpoints
        identity = open_directory(disk, config, endpoints, random, clock.wall_ms(), cluster_id)
        quorum = Quorum(disk, config, clock, random, jobs, identity, endpoints)
        quorum._turn(quorum._raft.tick)
        if quorum._raft.is_voter and not quorum._raft.others:
            await quorum._until(lambda: quorum.is_leader)
        return quorum

    @property
    def image(self) -> Image:
        return self._replay.loader.image

    @property
    def cluster_id(self) -> str:
        return self.identity.cluster_id

    @property
    def epoch(self) -> int:
        return self._raft.epoch

    @property
    def leader_id(self) -> int:
        """-1 where nobody is known to lead."""
        return self._raft.leader.id

    @property
    def is_leader(self) -> bool:
        """It leads, and everything before its epoch is committed and in `image`."""
        return self._led_epoch is not None

    @property
    def is_cut_off(self) -> bool:
        """So many voters are gone that nothing can be committed, by whomever."""
        return self._raft.is_cut_off

    def ask_around(self) -> None:
        """Have `is_cut_off` tell soon how things are."""
        self._turn(self._raft.ask_around)

    @property
    def role(self) -> str:
        """As Kafka's metrics call it."""
        if self._raft.role.name == "follower" and not self._raft.is_voter:
            return "observer"
        if self._raft.role.name == "unattached" and self._raft.voted is not None:
            return "voted"
        return self._raft.role.name

    @property
    def voted_id(self) -> int:
        """Whom this node voted for in its epoch; -1 for nobody."""
        if self.leader_id == self.identity.node_id:
            return self.identity.node_id
        return self._raft.voted.id if self._raft.voted is not None else NO_LEADER

    @property
    def raft(self) -> Raft:
        """For those who describe the quorum; they change nothing."""
        return self._raft

    @property
    def supported_features(self) -> dict[str, tuple[int, int]]:
        return {one.name: (one.low, one.high) for one in SUPPORTED}

    @property
    def kraft_version(self) -> int:
        """A level that the control records of the metadata log carry, not its feature records."""
        return self._raft.history.kraft_version

    @property
    def high_watermark(self) -> int:
        return self._raft.high_watermark

    @property
    def end_offset(self) -> int:
        """Where the next record will be; the high watermark once all proposals are committed."""
        return self._log.end_offset

    def controller_address(self) -> tuple[int, str, int] | None:
        """The active controller's id, host and port; None while nobody is known to lead."""
        leader = self._raft.address()
        return (leader.id, leader.host, leader.port) if leader.id != NO_LEADER and leader.host else None

    def subscribe(self, follower: Follower) -> None:
        """`follower` is called with each delta and the image that it led to, in order, before `propose` returns."""
        self._replay.subscribe(follower)

    def on_leadership(self, callback: OnLeadership) -> None:
        """`callback` is told whether this node leads, and in which epoch: now, where it does, and with each change."""
        self._on_leadership.append(callback)
        if self._led_epoch is not None:
            callback(True, self._led_epoch)

    def propose(self, records: Sequence[Message]) -> asyncio.Future[int]:
        """Append records as one batch, now; the result is its last offset, once it is committed and published.
        NOT_CONTROLLER where this node does not lead, or stops leading before: then the outcome is unknown."""
        assert records, "an empty proposal would never be committed"
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self._failure is not None:
            committed.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure))
        elif not self.is_leader:
            committed.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller"))
        else:
            self._append(records, committed)
        return committed

    async def answer(self, message: Any) -> Message:
        """Another node's request to the quorum, on its way through the core."""
        unfit = self._failure or (_STOPPING if self._closed else None)
        answer: Message = await _talking().answered(message, self.cluster_id, self._ask_if_reachable, unfit)
        return answer

    async def ask(self, request: Request) -> Answer:
        """The core's answer to a request, which may come later."""
        if self._failure is not None or self._closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, self._failure or _STOPPING)
        self._tokens += 1
        token = self._tokens
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[token] = answered
        try:
            self._turn(lambda now_ms: self._raft.step(Received(token, request), now_ms))
            return await answered
        finally:
            del self._asked[token]
            _take(answered)

    async def _ask_if_reachable(self, request: Request) -> Answer:
        """A voter that the others cannot reach would be a voice lost: it is tried before it becomes one."""
        if isinstance(request, AddVoter) and self.is_leader and self._raft.history.find(request.voter.id) is None:
            timeout_ms = min(request.timeout_ms, self._raft.settings.request_timeout_ms)
            fault: str | None = await _talking().unreachable(request.voter, timeout_ms)
            if fault is not None:
                return ChangeAnswer(self._raft.address(), ErrorCode.REQUEST_TIMED_OUT, shortened(fault))
        return await self.ask(request)

    async def settled(self) -> None:
        """Until `image` has all that was committed when this node heard of a leader. Before that it may know less than
        the node did when it stopped, and copies of topics that it does not name would be taken for strays."""
        await self._until(lambda: self._raft.is_caught_up and self._is_replayed())

    async def close(self) -> None:
        """Hand over where this node leads, wait for what is under way, and close the log."""
        await self._hand_over()
        await self._proposals.decided()
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._peers is not None:
            await self._peers.close()
        self._refuse_asked(_STOPPING)
        await self._upkeep.finished()
        self._log.close()

    def _begin(self, config: BrokerConfig, random: Random) -> Raft:
        me = Voter(self.identity.node_id, self.identity.directory_id, self.controller_endpoints)
        history = VoterHistory(configured_voters(config, me))
        found = self._log.begin()
        if found is not None:
            for kind, value in found.content.controls:
                history.learn(kind, value, found.id.offset - 1)
            self._replay.begin_at(found.content.records, found.id.offset, found.id.epoch)
        for offset, (kind, value) in self._log.controls_from(self._replay.next_offset):
            history.learn(kind, value, offset)
        stored = self._log.stored_state()
        if stored is None and len(history.voters) > 1:
            raise ConfigFault("log.dirs: the file quorum-state is damaged, and with it this node's vote; restore it")
        return Raft(
            me,
            self._log,
            stored or QuorumState(),
            history,
            quorum_settings(config),
            random,
            now_ms=self._clock.monotonic_ms(),
            contacts=tuple(-1 - index for index in range(len(config.texts("controller.quorum.bootstrap.servers")))),
        )

    def _turn(self, act: Callable[[int], None]) -> None:
        """One event: decide, do, publish."""
        if self._failure is not None or self._closed:
            return
        try:
            act(self._clock.monotonic_ms())
            self._do()
            if not self._publishing:
                self._publish()
                self._do()
        except (KafkaError, OSError) as error:
            self._fail(str(error))
            return
        except BaseException as bug:
            # In the middle of a decision: nothing that this node says from now on could be trusted.
            self._end(repr(bug))
            self.on_failure(repr(bug))
            raise
        self._set_alarm()

    def _do(self) -> None:
        ready = self._raft.ready()
        for reply in ready.replies:
            asked = self._asked.get(reply.token)
            if asked is not None and not asked.done():
                asked.set_result(reply.answer)
        if ready.sends:
            self._send(ready.sends)
        if ready.unsynced:
            self._upkeep.sync()

    def _send(self, sends: list[Send]) -> None:
        if self._peers is None:
            talking = _talking()
            self._peers = talking.QuorumPeers(self._config, self.cluster_id, self._clock, self._random, self._heard)
        leader = self._raft.leader
        if leader.host:
            self._peers.place(leader.id, leader.host, leader.port)
        for voter in self._raft.others:
            if voter.endpoints and not (leader.host and voter.id == leader.id):
                self._peers.place(voter.id, voter.endpoints[0].host, voter.endpoints[0].port)
        for send in sends:
            self._peers.send(send)

    def _heard(self, event: Answered | Failed) -> None:
        self._turn(lambda now_ms: self._raft.step(event, now_ms))

    def _set_alarm(self) -> None:
        """For the next time the core wants to be called; one that rings too early does no harm."""
        due_ms = self._raft.deadline_ms
        if due_ms >= self._alarm_ms or due_ms >= NEVER:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = due_ms
        wait_ms = max(due_ms - self._clock.monotonic_ms(), 0)
        self._alarm = asyncio.get_running_loop().call_later(wait_ms / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm, self._alarm_ms = None, NEVER
        self._turn(self._raft.tick)

    def _append(self, records: Sequence[Message], committed: asyncio.Future[int]) -> None:
        wall_ms = self._clock.wall_ms()
        buf = build_metadata_batch(records, self.image.features, now_ms=wall_ms, leader_epoch=self.epoch)

        def act(now_ms: int) -> None:
            try:
                last_offset = self._raft.append(buf, now_ms)
            except KafkaError as refusal:
                self._refused(refusal, committed, now_ms)
                return
            batch = MetadataBatch(last_offset, self.epoch, wall_ms, list(records), [])
            self._replay.own.append(Own(batch, len(buf)))
            self._proposals.add(last_offset, committed)

        try:
            self._turn(act)
        except BaseException:
            _take(committed)
            raise
        if self._failure is not None and not committed.done():
            committed.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure))

    def _refused(self, refusal: KafkaError, committed: asyncio.Future[int], now_ms: int) -> None:
        """The batch was not written. For want of room, it may be proposed again; another may have the room now."""
        if self._log.has_failed:
            raise refusal
        log.error("the metadata could not be written", fault=str(refusal))
        committed.set_exception(refusal)
        if self._raft.others:
            self._raft.resign(now_ms)
            self._raft.tick(now_ms)

    def _synced(self, fault: OSError | None) -> None:
        if fault is not None:
            self._fail(f"the metadata log could not be synced: {fault}")
        else:
            self._turn(self._raft.advance)

    def _publish(self) -> None:
        """Bring the image up to what is committed, and tell those who wait for it."""
        self._publishing = True
        try:
            if self._led_epoch not in (None, self._led_now()):
                self._stop_leading()
            self._replay.up_to(self._raft.high_watermark)
            self._raft.history.settle(self._replay.next_offset)
            self._proposals.settle(self._replay.next_offset)
            self._maybe_lead()
        finally:
            self._publishing = False
        self._changed.set()
        if not self._replay.loader.in_transaction:
            self._upkeep.shorten(self.image, lambda: self._raft.history.control_records(self.image.offset))

    def _led_now(self) -> int | None:
        return self.epoch if self._raft.is_leading else None

    def _is_replayed(self) -> bool:
        return self._replay.next_offset >= max(self._raft.high_watermark, 1)

    def _maybe_lead(self) -> None:
        """Leading begins once the image has everything before the epoch, and what a new leader tidies up."""
        epoch = self._led_now()
        if epoch is None or self._led_epoch == epoch:
            return
        if self._prepared is None or self._prepared[0] != epoch:
            self._prepared = epoch, self._prepare()
        if self._replay.next_offset > self._prepared[1]:
            self._led_epoch = epoch
            for callback in list(self._on_leadership):
                callback(True, epoch)

    def _prepare(self) -> int:
        """Write what a leader finds missing, and return where it ends: a transaction that its controller did not
        end is dropped, a new cluster gets its first records."""
        last_offset = self._replay.next_offset - 1
        if self._replay.loader.in_transaction:
            last_offset = self._write([AbortTransactionRecord(reason="the controller that began it is gone")])
        if not self.image.features:
            last_offset = self._write(bootstrap_records(self._disk))
        return last_offset

    def _write(self, records: Sequence[Message]) -> int:
        buf = build_metadata_batch(records, self.image.features, now_ms=self._clock.wall_ms(), leader_epoch=self.epoch)
        return self._raft.append(buf, self._clock.monotonic_ms())

    def _stop_leading(self) -> None:
        assert self._led_epoch is not None
        epoch, self._led_epoch = self._led_epoch, None
        self._replay.forget_own()
        self._proposals.fail(ErrorCode.NOT_CONTROLLER, "this node is not the active controller any more")
        for callback in list(self._on_leadership):
            callback(False, epoch)

    def _fail(self, reason: str) -> None:
        """Nothing is decided any more: what was appended may or may not be there after a restart."""
        log.error("the metadata log takes no more writes", fault=reason)
        self._end(reason)
        if self._led_epoch is not None:
            self._stop_leading()
        self.on_failure(reason)

    def _end(self, reason: str) -> None:
        """No turn follows: whoever waits for one is told."""
        self._failure = reason
        self._proposals.fail(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        self._refuse_asked(reason)
        self._changed.set()

    def _refuse_asked(self, reason: str) -> None:
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, reason))

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            if self._failure is not None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
            self._changed.clear()
            await self._changed.wait()

    async def _hand_over(self) -> None:
        """A leader that stops says so, and the others need not wait for it to be missed."""
        if self._failure is not None or not self._raft.others or self._raft.role.name != "leader":
            return
        if not self.is_cut_off:
            await self._proposals.decided(_RESIGN_MS)

        def resign(now_ms: int) -> None:
            self._raft.resign(now_ms)
            self._raft.tick(now_ms)

        self._turn(resign)
        try:
            async with asyncio.timeout(_RESIGN_MS / 1000):
                await self._until(self._is_told)
        except (KafkaError, TimeoutError) as fault:
            log.warning("not every voter could be told that this node leads no more", fault=str(fault))

    def _is_told(self) -> bool:
        role = self._raft.role
        return not isinstance(role, Resigned) or role.is_told(self._raft)


def _take(promised: asyncio.Future[Any]) -> None:
    """Whoever breaks a turn hears of that, and does not wait for what the turn was to bring."""
    if promised.done() and not promised.cancelled():
        promised.exception()
