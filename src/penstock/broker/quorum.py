"""The metadata quorum's shell, with this node as the only voter: it owns the metadata log and publishes its image.

Start: the newest snapshot and the log behind it are replayed; a new epoch is begun and written first. A proposal is
appended as one batch at once, synced together with others in a job, and only then replayed and published, in the order
of the log. Every so many bytes a snapshot is written and what is older goes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.base.errors import DecodeError, ErrorCode, KafkaError
from penstock.base.ids import METADATA_TOPIC_ID
from penstock.base.ports import Clock, Disk, Jobs, Random
from penstock.broker.config import BrokerConfig, ConfigFault, Listener
from penstock.broker.formatting import METADATA_DIRECTORY, Identity, bootstrap_records, open_directory
from penstock.broker.journal import Journal
from penstock.broker.metadata_snapshots import MetadataSnapshots
from penstock.core.controller.brokers import decide_fence_broker, decide_register_broker, decide_unfence_broker
from penstock.core.controller.features import SUPPORTED
from penstock.core.log import names
from penstock.core.log.checkpoints import encode_partition_metadata
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.log.sync import SyncWork
from penstock.core.metadata.delta import Delta
from penstock.core.metadata.effective import Node
from penstock.core.metadata.image import Image
from penstock.core.metadata.loader import Loader
from penstock.core.raft import state
from penstock.core.raft.batches import MetadataBatch, build_metadata_batch, read_batches
from penstock.core.raft.leader import begin_epoch
from penstock.core.raft.voters import Voter, VoterEndpoint, VoterHistory
from penstock.protocol.generated import broker_registration_request as registration
from penstock.protocol.generated.abort_transaction_record import AbortTransactionRecord
from penstock.protocol.generated.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from penstock.protocol.message import Message

log = Journal(__name__)

_READ_BYTES = 1_048_576
_RECORDS_AT_ONCE = 1_000
"""records of one proposal, where it need not be taken whole"""
_RECOVERY_POINT = f"{METADATA_DIRECTORY}/penstock-recovery-point"
"""Below which offset the log was durable; Kafka keeps no such file for it, and passes over ours."""

Follower = Callable[[Delta, Image], None]


class _Proposal(NamedTuple):
    """A batch in the log that is not committed yet."""

    batch: MetadataBatch
    size_bytes: int
    committed: asyncio.Future[int]


class Quorum:
    """Invariant: `image` is what the batches below the high watermark say, and that is what has been synced."""

    def __init__(
        self, disk: Disk, config: BrokerConfig, clock: Clock, random: Random, jobs: Jobs, identity: Identity
    ) -> None:
        self.identity = identity
        self.broker_epoch = -1
        """Known once the broker is registered."""
        self.epoch = 0
        """The leader epoch in which this node writes."""
        self._disk = disk
        self._config = config
        self._node = Node(config.node_id, config.values)
        self._clock = clock
        self._random = random
        self._jobs = jobs
        self._log = _open_log(disk, config, clock.wall_ms())
        self._loader = Loader()
        self._history = VoterHistory()
        self._snapshots = MetadataSnapshots(disk, METADATA_DIRECTORY, config, clock)
        self._followers: list[Follower] = []
        self._pending: deque[_Proposal] = deque()
        self._syncing = False
        self._snapshotting: asyncio.Future[None] | None = None
        self._failure: str | None = None

    @staticmethod
    async def open(
        disk: Disk,
        config: BrokerConfig,
        clock: Clock,
        random: Random,
        jobs: Jobs,
        *,
        cluster_id: str | None = None,
    ) -> Quorum:
        """Replay what is there and lead. ConfigFault where the directory is not this node's, or not readable."""
        endpoints = _controller_endpoints(config)
        identity = open_directory(disk, config.node_id, endpoints, random, clock.wall_ms(), cluster_id)
        quorum = Quorum(disk, config, clock, random, jobs, identity)
        quorum._replay()
        await quorum._lead(Voter(config.node_id, identity.directory_id, endpoints))
        return quorum

    @property
    def image(self) -> Image:
        return self._loader.image

    @property
    def cluster_id(self) -> str:
        return self.identity.cluster_id

    @property
    def supported_features(self) -> dict[str, tuple[int, int]]:
        return {one.name: (one.low, one.high) for one in SUPPORTED}

    @property
    def kraft_version(self) -> int:
        """A level that the control records of the metadata log carry, not its feature records."""
        return self._history.kraft_version

    @property
    def high_watermark(self) -> int:
        return self._log.synced_offset

    @property
    def end_offset(self) -> int:
        """Where the next record will be; the high watermark once all proposals are committed."""
        return self._log.end_offset

    def subscribe(self, follower: Follower) -> None:
        """`follower` is called with each delta and the image that it led to, in order, before `propose` returns."""
        self._followers.append(follower)

    def propose(self, records: Sequence[Message]) -> asyncio.Future[int]:
        """Append records as one batch, now; the result is its last offset, once it is committed and published."""
        assert records, "an empty proposal would never be committed"
        now_ms = self._clock.wall_ms()
        buf = build_metadata_batch(records, self.image.features, now_ms=now_ms, leader_epoch=self.epoch)
        return self._append(buf, list(records), now_ms)

    async def register(self, advertised: Sequence[Listener], incarnation: bytes, *, stopped_cleanly: bool) -> None:
        """Tell the cluster of this controller and this broker, and that the broker is ready to lead."""
        await self.propose([self._controller_record(incarnation)])
        request = self._registration(incarnation, advertised)
        decided = decide_register_broker(
            self.image, request, cluster_id=self.cluster_id, next_offset=self._log.end_offset
        )
        if decided.response.error_code:
            code = ErrorCode(decided.response.error_code)
            raise KafkaError(code, f"node {self._node.id} could not register itself: {code.name}")
        self.broker_epoch = decided.response.broker_epoch
        await self.propose(decided.records)
        ready = decide_unfence_broker(self.image, self._node, self._node.id, lead_again=not stopped_cleanly)
        for at in range(0, len(ready), _RECORDS_AT_ONCE):
            await self.propose(ready[at : at + _RECORDS_AT_ONCE])

    async def leave(self) -> None:
        """Tell the cluster that this broker is going. That it could not be told does not keep it."""
        if self.broker_epoch >= 0 and self._failure is None:
            try:
                await self.propose(decide_fence_broker(self.image, self._node.id))
            except KafkaError as error:
                log.warning("the metadata log could not be told that the broker stops", fault=str(error))

    async def close(self) -> None:
        """Wait for what is under way, and close the log."""
        if self._pending:
            await asyncio.wait([proposal.committed for proposal in self._pending])
        if self._snapshotting is not None:
            await self._snapshotting
        if self._log.close():
            self._save_recovery_point()

    def _replay(self) -> None:
        found = self._snapshots.load_newest()
        if found is not None:
            for kind, value in found.content.controls:
                self._history.learn(kind, value, in_log=found.id.offset > 0)
            self._loader.load(found.content.records, found.id.offset - 1, found.id.epoch)
        at = found.id.offset if found is not None else 0
        if at < self._log.start_offset:
            raise ConfigFault(
                f"log.dirs: the metadata log begins at offset {self._log.start_offset} and no snapshot reaches there; "
                "restore the directory from a copy"
            )
        if at > self._log.end_offset:
            # The snapshot is durable and the log behind it is lost: go on from the snapshot, as Kafka does.
            self._log.truncate_fully(at)
        while at < self._log.end_offset:
            for piece in self._log.read(at, _READ_BYTES, limit_offset=self._log.end_offset):
                for batch in read_batches(piece.read()):
                    if batch.last_offset >= at:
                        self._take(batch)
                        at = batch.last_offset + 1

    def _take(self, batch: MetadataBatch) -> Delta:
        for kind, value in batch.controls:
            self._history.learn(kind, value, in_log=True)
        return self._loader.load(batch.records, batch.last_offset, batch.epoch)

    async def _lead(self, me: Voter) -> None:
        others = [voter.id for voter in self._history.voters if voter.id != me.id] or _others_configured(self._config)
        if others:
            raise ConfigFault(
                f"controller.quorum.voters: this cluster's metadata is also kept by {', '.join(map(str, others))}; "
                "a quorum of several controllers is not built so far"
            )
        path = f"{METADATA_DIRECTORY}/{state.FILE}"
        begun = begin_epoch(
            self._read_state(path), self._history, me, log_epoch=self._log.epochs.latest, now_ms=self._clock.wall_ms()
        )
        self._disk.replace(path, begun.state.encode())
        self.epoch = begun.state.leader_epoch
        await self._append(begun.batch, [], self._clock.wall_ms())
        self._save_recovery_point()
        if self._loader.in_transaction:
            await self.propose([AbortTransactionRecord(reason="the controller that began it is gone")])
        if not self.image.features:
            await self.propose(bootstrap_records(self._disk))

    def _read_state(self, path: str) -> state.QuorumState:
        try:
            return state.QuorumState.decode(self._disk.read(path))
        except FileNotFoundError:
            return state.QuorumState()
        except DecodeError as fault:
            log.warning("the quorum's state is unreadable: the log says which epoch is the last", fault=str(fault))
            return state.QuorumState()

    def _append(self, buf: bytearray, records: list[Message], now_ms: int) -> asyncio.Future[int]:
        committed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self._failure is not None:
            committed.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure))
            return committed
        try:
            appended = self._log.append(buf, 0, len(buf), leader_epoch=self.epoch, now_ms=now_ms, origin="coordinator")
        except KafkaError as error:
            committed.set_exception(error)
            return committed
        batch = MetadataBatch(appended.last_offset, self.epoch, now_ms, records, [])
        self._pending.append(_Proposal(batch, len(buf), committed))
        self._sync()
        return committed

    def _sync(self) -> None:
        """One sync at a time: what is appended while it runs goes with the next."""
        work = None if self._syncing else self._log.unsynced()
        if work is not None:
            self._syncing = True
            self._jobs.run(work.run, lambda outcome: self._synced(work, outcome))

    def _synced(self, work: SyncWork, outcome: BaseException | None) -> None:
        self._syncing = False
        if outcome is not None:
            assert isinstance(outcome, OSError), outcome
            self._log.on_sync_failed(outcome)
            self._fail(f"the metadata log could not be synced: {outcome}")
            return
        self._log.on_synced(work)
        while self._pending and self._pending[0].batch.last_offset < self._log.synced_offset:
            self._commit(self._pending.popleft())
        if self._pending:
            self._sync()
        elif self._snapshotting is None and not self._loader.in_transaction and self._snapshots.due(self.image):
            self._write_snapshot()

    def _commit(self, proposal: _Proposal) -> None:
        delta = self._take(proposal.batch)
        self._snapshots.grew(proposal.size_bytes, proposal.batch.timestamp)
        for follower in self._followers:
            follower(delta, self.image)
        if not proposal.committed.done():
            proposal.committed.set_result(proposal.batch.last_offset)

    def _fail(self, reason: str) -> None:
        """Nothing is decided any more: what was appended may or may not be there after a restart."""
        self._failure = reason
        log.error("the metadata log takes no more writes", fault=reason)
        while self._pending:
            proposal = self._pending.popleft()
            if not proposal.committed.done():
                proposal.committed.set_exception(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))

    def _write_snapshot(self) -> None:
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._snapshotting = written
        work = self._snapshots.writing(self.image, self._history.control_records())
        self._jobs.run(work, lambda outcome: self._snapshot_written(written, outcome))

    def _snapshot_written(self, written: asyncio.Future[None], outcome: BaseException | None) -> None:
        self._snapshotting = None
        written.set_result(None)
        if outcome is not None:
            log.warning("a snapshot of the metadata could not be written; the log is kept", fault=str(outcome))
            return
        self._save_recovery_point()
        self._snapshots.prune(self._log)

    def _save_recovery_point(self) -> None:
        self._disk.replace(_RECOVERY_POINT, f"{self._log.recovery_point}\n".encode())

    def _controller_record(self, incarnation: bytes) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self._node.id,
            incarnation_id=incarnation,
            end_points=[
                ControllerEndpoint(name=one.name, host=one.host, port=one.port)
                for one in _controller_endpoints(self._config)
            ],
            features=[
                ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self._registered_features().items()
            ],
        )

    def _registration(
        self, incarnation: bytes, advertised: Sequence[Listener]
    ) -> registration.BrokerRegistrationRequest:
        return registration.BrokerRegistrationRequest(
            broker_id=self._node.id,
            cluster_id=self.cluster_id,
            incarnation_id=incarnation,
            listeners=[registration.Listener(name=one.name, host=one.host, port=one.port) for one in advertised],
            features=[
                registration.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self._registered_features().items()
            ],
            rack=self._config.text("broker.rack") or None,
            log_dirs=[self.identity.directory_id],
        )

    def _registered_features(self) -> dict[str, tuple[int, int]]:
        """What we support, and what an adopted cluster has finalized: its records are understood at those levels."""
        ranges = {name: (0, level) for name, level in self.image.features.items()}
        return dict(sorted((ranges | self.supported_features).items()))


def _open_log(disk: Disk, config: BrokerConfig, now_ms: int) -> Log:
    """The metadata log. It is kept whole until a snapshot says otherwise, whatever its age and size."""
    log_config = LogConfig(
        segment_bytes=config.number("metadata.log.segment.bytes"),
        segment_ms=config.number("metadata.log.segment.ms"),
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=2**31 - 1,
        file_delete_delay_ms=0,
    )
    try:
        point = int(disk.read(_RECOVERY_POINT))
    except (FileNotFoundError, ValueError):
        point = 0
    opened = Log.open(disk, METADATA_DIRECTORY, log_config, now_ms=now_ms, recovery_point=point)
    if opened.damage:
        raise ConfigFault(f"log.dirs: the metadata log is damaged: {opened.damage[0]}; restore it from a copy")
    path = f"{METADATA_DIRECTORY}/{names.PARTITION_METADATA}"
    if not disk.exists(path):
        disk.replace(path, encode_partition_metadata(METADATA_TOPIC_ID))
    return opened


def _controller_endpoints(config: BrokerConfig) -> tuple[VoterEndpoint, ...]:
    return tuple(
        VoterEndpoint(one.name, one.host or "localhost", one.port)
        for one in config.listeners
        if one.name in config.controller_listener_names
    )


def _others_configured(config: BrokerConfig) -> list[int]:
    """Ids of other voters in `controller.quorum.voters`, each written as id@host:port."""
    ids = [text.partition("@")[0].strip() for text in config.values.get("controller.quorum.voters", "").split(",")]
    return [int(one) for one in ids if one.isdigit() and int(one) != config.node_id]
