"""The metadata quorum on a disk in memory: what is committed is there again after a restart, whatever happened."""

from __future__ import annotations

import asyncio
import errno
import gc
from collections.abc import Awaitable, Callable
from random import Random as Chance
from typing import TypeVar

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.broker.config import BrokerConfig, ConfigFault
from penstock.broker.files import RealDisk
from penstock.broker.formatting import BOOTSTRAP, META, METADATA_DIRECTORY, format_directory, read_identity
from penstock.broker.metadata_log import MetadataLog
from penstock.broker.metadata_snapshots import MetadataSnapshots
from penstock.broker.metadata_upkeep import MetadataUpkeep
from penstock.broker.properties import parse_properties
from penstock.broker.quorum import Quorum
from penstock.core.log.log import Log
from penstock.core.metadata.image import Image
from penstock.core.raft.batches import build_metadata_batch
from penstock.core.raft.rpc import RemoveVoter
from penstock.core.raft.snapshot import SnapshotId, encode_snapshot
from penstock.core.raft.voters import Replica, VoterEndpoint
from penstock.protocol.generated.begin_transaction_record import BeginTransactionRecord
from penstock.protocol.generated.config_record import ConfigRecord
from penstock.protocol.generated.feature_level_record import FeatureLevelRecord
from penstock.protocol.generated.partition_change_record import PartitionChangeRecord
from penstock.protocol.generated.partition_record import PartitionRecord
from penstock.protocol.generated.topic_record import TopicRecord
from penstock.sim.disk import PowerLoss, SimDisk
from tests.unit.core.raft.raft_bench import later_snapshot

T = TypeVar("T")


class SetClock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class SeededRandom:
    def __init__(self, seed: int = 1) -> None:
        self.chance = Chance(seed)

    def bytes(self, count: int) -> bytes:
        return self.chance.randbytes(count)

    def below(self, bound: int) -> int:
        return self.chance.randrange(bound)


class LoopJobs:
    """Jobs that run on the loop, one turn later; `held` keeps them back."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] | None = None
        self.ran = 0
        self.lost_power = False

    def run(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        def turn() -> None:
            self.ran += 1
            try:
                done(_outcome(work))
            except PowerLoss:
                self.lost_power = True
                for task in asyncio.all_tasks():
                    task.cancel()

        if self.held is None:
            asyncio.get_running_loop().call_soon(turn)
        else:
            self.held.append(turn)

    def release(self) -> None:
        held, self.held = self.held or [], None
        for turn in held:
            turn()


class LateJobs:
    """What a job does is done at once, and told a turn later."""

    def run(self, work: Callable[[], T], done: Callable[[T | BaseException], None]) -> None:
        asyncio.get_running_loop().call_soon(done, _outcome(work))


def _outcome(work: Callable[[], T]) -> T | BaseException:
    try:
        return work()
    except OSError as error:
        return error


class Bench:
    """One node's disk and ports, over which quorums are opened one after another."""

    def __init__(self, **configs: str) -> None:
        self.disk = SimDisk(Chance(7))
        self.clock = SetClock()
        self.random = SeededRandom()
        self.jobs = LoopJobs()
        self.configs = {name.replace("_", "."): value for name, value in configs.items()}

    @property
    def config(self) -> BrokerConfig:
        return BrokerConfig(
            {
                "node.id": "1",
                "process.roles": "broker,controller",
                "controller.listener.names": "CONTROLLER",
                "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
                **self.configs,
            }
        )

    async def open(self) -> Quorum:
        return await Quorum.open(self.disk, self.config, self.clock, self.random, self.jobs)

    def run(self, work: Callable[[Quorum], Awaitable[T]], *, close: bool = True) -> T:
        """Open, do, close; where not closed, the process is gone without a word."""

        async def session() -> T:
            quorum = await self.open()
            result = await work(quorum)
            if close:
                await quorum.close()
            return result

        self.jobs.lost_power = False
        try:
            return asyncio.run(session())
        except asyncio.CancelledError:
            assert self.jobs.lost_power
            raise PowerLoss from None

    def image(self) -> Image:
        async def look(quorum: Quorum) -> Image:
            return quorum.image

        return self.run(look)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def topic(name: str) -> list[TopicRecord | PartitionRecord]:
    topic_id = name.encode().ljust(16, b"_")
    partition = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0
    )
    return [TopicRecord(name=name, topic_id=topic_id), partition]


def test_an_empty_directory_begins_a_cluster_at_the_latest_metadata_version(bench):
    image = bench.image()
    assert image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert bench.disk.exists(META) and bench.disk.exists(BOOTSTRAP)


def test_what_was_committed_is_there_after_a_restart(bench):
    async def create(quorum: Quorum) -> Image:
        await quorum.propose(topic("orders"))
        return quorum.image

    before = bench.run(create)
    assert bench.image() == before
    assert list(before.topics) == ["orders"]


def test_each_start_leads_a_new_epoch_of_the_same_cluster(bench):
    async def who(quorum: Quorum) -> tuple[str, int]:
        return quorum.cluster_id, quorum.epoch

    first, second = bench.run(who), bench.run(who)
    assert (first[0], first[1] + 1) == second


def test_a_proposal_is_published_only_once_it_is_synced(bench):
    async def hold(quorum: Quorum) -> None:
        seen: list[list[str]] = []
        quorum.subscribe(lambda delta, image: seen.append(list(image.topics)))
        bench.jobs.held = []
        first, second = quorum.propose(topic("a")), quorum.propose(topic("b"))
        await asyncio.sleep(0)
        assert (list(quorum.image.topics), seen, first.done()) == ([], [], False)
        bench.jobs.release()
        assert await first < await second
        assert seen == [["a"], ["a", "b"]]
        assert quorum.high_watermark == quorum.end_offset

    bench.run(hold)


def test_many_proposals_share_a_sync(bench):
    async def storm(quorum: Quorum) -> None:
        before = bench.jobs.ran
        await asyncio.gather(*(quorum.propose(topic(f"t{at}")) for at in range(50)))
        assert bench.jobs.ran - before <= 3

    bench.run(storm)


def test_a_proposal_that_finds_no_room_may_be_made_again(bench):
    async def fill(quorum: Quorum) -> None:
        told: list[str] = []
        quorum.on_failure = told.append
        bench.disk.capacity_bytes = bench.disk.used_bytes() + 10
        with pytest.raises(KafkaError) as refusal:
            await quorum.propose(topic("a"))
        assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        bench.disk.unlimited()
        await quorum.propose(topic("b"))
        assert (list(quorum.image.topics), told) == (["b"], [])

    bench.run(fill)


def test_a_failed_sync_is_told_once_for_the_process_must_end(bench):
    async def fail(quorum: Quorum) -> None:
        told: list[str] = []
        quorum.on_failure = told.append
        bench.disk.fail_next("sync", errno.EIO, path_contains=METADATA_DIRECTORY)
        for name in ("a", "b"):
            with pytest.raises(KafkaError):
                await quorum.propose(topic(name))
        assert len(told) == 1 and "could not be synced" in told[0]

    bench.run(fail, close=False)


def test_a_failed_sync_ends_all_writing(bench):
    async def fail(quorum: Quorum) -> None:
        bench.disk.fail_next("sync", errno.EIO, path_contains=METADATA_DIRECTORY)
        for name in ("a", "b"):
            with pytest.raises(KafkaError) as refusal:
                await quorum.propose(topic(name))
            assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert quorum.image.topics == {}

    bench.run(fail, close=False)


def test_a_log_is_not_closed_over_a_sync_that_failed_and_is_not_told_yet(bench):
    """A sync after the one that failed finds nothing left to do and succeeds. What the first has lost must not be
    called durable, or the node takes its own log for damaged at its next start."""
    features = bench.image().features
    metadata = MetadataLog(bench.disk, bench.config, bench.clock)
    end = metadata.end_offset
    told: list[OSError | None] = []

    async def stop() -> None:
        upkeep = MetadataUpkeep(metadata, LateJobs(), told.append)
        metadata.append(build_metadata_batch(topic("lost"), features, now_ms=0), 7, 0)
        bench.disk.fail_next("sync", errno.EIO, path_contains=".log")
        upkeep.sync()
        await upkeep.finished()
        metadata.close()

    asyncio.run(stop())
    assert [type(one) for one in told] == [OSError]
    bench.disk.crash()
    assert MetadataLog(bench.disk, bench.config, bench.clock).end_offset == end


@pytest.mark.parametrize("seed", range(60))
def test_a_loss_of_power_at_any_moment_takes_nothing_that_was_committed(seed):
    bench = Bench(metadata_log_max_record_bytes_between_snapshots="600", metadata_max_retention_bytes="900")
    bench.disk = SimDisk(Chance(seed))
    committed: list[str] = []
    chance = Chance(seed)
    for life in range(4):
        bench.disk.power_loss_after(chance.randrange(1, 60))

        async def live(quorum: Quorum, life: int = life) -> None:
            for at in range(10):
                name = f"t{life}-{at}"
                await quorum.propose(topic(name))
                committed.append(name)

        with pytest.raises(PowerLoss):
            bench.run(lambda quorum: _then_die(live(quorum)))
        bench.disk.crash()
    assert set(committed) <= set(bench.image().topics)


async def _then_die(work: Awaitable[None]) -> None:
    await work
    raise PowerLoss


def test_a_snapshot_is_written_and_what_is_older_goes():
    bench = Bench(metadata_log_max_record_bytes_between_snapshots="2000", metadata_max_retention_bytes="0")

    async def churn(quorum: Quorum) -> Image:
        await quorum.propose(topic("orders"))
        for at in range(100):
            value = str(at)
            await quorum.propose([ConfigRecord(resource_type=2, resource_name="orders", name="x", value=value)])
        return quorum.image

    before = bench.run(churn)
    names = bench.disk.list(METADATA_DIRECTORY)
    snapshots = [name for name in names if name.endswith(".checkpoint")]
    assert len(snapshots) == 1
    assert snapshots[0] > "00000000000000000050"
    assert not [name for name in names if name.startswith("00000000000000000000.")]
    assert bench.image() == before
    assert bench.image() == before


def test_a_snapshot_counts_though_what_it_makes_superfluous_cannot_be_removed(monkeypatch):
    """The log begins at it already when a file cannot be removed: were it not known, nobody could be brought up."""
    bench = Bench(metadata_log_max_record_bytes_between_snapshots="2000", metadata_max_retention_bytes="0")
    prune = MetadataSnapshots.prune

    def prune_and_fail(snapshots: MetadataSnapshots, metadata: Log) -> None:
        prune(snapshots, metadata)
        raise OSError(errno.EIO, "the last of the files")

    monkeypatch.setattr(MetadataSnapshots, "prune", prune_and_fail)

    async def churn(quorum: Quorum) -> None:
        await quorum.propose(topic("orders"))
        for at in range(100):
            await quorum.propose([ConfigRecord(resource_type=2, resource_name="orders", name="x", value=str(at))])
        newest = quorum._log.snapshot
        assert newest is not None and 50 < quorum._log.start_offset <= newest.offset

    bench.run(churn)


def test_a_snapshot_is_also_due_after_a_time():
    bench = Bench(metadata_log_max_snapshot_interval_ms="1000")

    async def wait(quorum: Quorum) -> None:
        bench.clock.now_ms += 1001
        await quorum.propose(topic("orders"))

    bench.run(wait)
    assert len([name for name in bench.disk.list(METADATA_DIRECTORY) if name.endswith(".checkpoint")]) == 2


def test_an_unreadable_snapshot_is_passed_over_while_the_log_reaches_back():
    bench = Bench(metadata_log_max_snapshot_interval_ms="1000")

    async def create(quorum: Quorum) -> Image:
        bench.clock.now_ms += 1001
        await quorum.propose(topic("orders"))
        return quorum.image

    before = bench.run(create)
    newest = max(name for name in bench.disk.list(METADATA_DIRECTORY) if name.endswith(".checkpoint"))
    bench.disk.flip_bit(f"{METADATA_DIRECTORY}/{newest}", 900)
    assert bench.image() == before
    names = bench.disk.list(METADATA_DIRECTORY)
    assert newest not in names, "replicas that need a snapshot are not given this one"
    assert f"{newest}.damaged" in names


def test_a_snapshot_of_a_later_release_is_kept_for_it():
    """Whoever starts an older release by mistake goes back to the newer one and finds everything there."""
    bench = Bench()
    bench.image()
    newest = f"{METADATA_DIRECTORY}/{SnapshotId(99, 1).file_name}"
    bench.disk.replace(newest, later_snapshot(b"\x01\xff\x7f\x00"))
    with pytest.raises(ConfigFault, match="start the release that wrote it"):
        bench.image()
    assert bench.disk.exists(newest)


def test_what_was_being_put_together_when_a_node_stopped_is_removed_at_its_next_start(bench):
    bench.image()
    left = [f"{METADATA_DIRECTORY}/00000000000000000040-0000000002.checkpoint{end}" for end in (".part", ".tmp")]
    for path in left:
        bench.disk.replace(path, b"half of a snapshot")
    bench.image()
    assert not any(bench.disk.exists(path) for path in left)


def test_a_snapshot_that_is_begun_takes_the_place_of_one_that_was_given_up(bench):
    bench.image()
    snapshots = MetadataSnapshots(bench.disk, METADATA_DIRECTORY, bench.config, bench.clock)
    snapshots.write_part(SnapshotId(40, 2), 0, b"half of")
    snapshots.write_part(SnapshotId(50, 2), 0, b"all of")
    snapshots.write_part(SnapshotId(50, 2), 6, b" it")
    (part,) = [name for name in bench.disk.list(METADATA_DIRECTORY) if name.endswith(".part")]
    assert bench.disk.read(f"{METADATA_DIRECTORY}/{part}") == b"all of it"


@pytest.mark.parametrize("position", [2**31, 2**62, 2**63 - 1])
def test_a_piece_of_a_snapshot_from_behind_its_end_is_empty(tmp_path, position: int):
    disk = RealDisk(str(tmp_path))
    disk.replace(SnapshotId(40, 2).file_name, b"a snapshot")
    snapshots = MetadataSnapshots(disk, ".", Bench().config, SetClock())
    assert snapshots.read(SnapshotId(40, 2), position, 100) == (10, b"")


def test_who_asks_a_node_that_has_stopped_is_told(bench):
    async def ask(quorum: Quorum) -> None:
        await quorum.close()
        with pytest.raises(KafkaError) as told:
            await asyncio.wait_for(quorum.ask(RemoveVoter(Replica(2, bytes(16)))), 5)
        assert told.value.code is ErrorCode.BROKER_NOT_AVAILABLE

    bench.run(ask, close=False)


def test_a_bug_in_a_turn_leaves_nobody_waiting(bench):
    async def break_down(quorum: Quorum) -> None:
        bench.jobs.held = []  # nothing is synced, so that nothing is committed
        proposed = quorum.propose(topic("orders"))

        def bug(now_ms: int) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            quorum._turn(bug)
        with pytest.raises(KafkaError):
            await asyncio.wait_for(proposed, 5)

    bench.run(break_down, close=False)


async def _ask(quorum: Quorum) -> None:
    await quorum.ask(RemoveVoter(Replica(2, bytes(16))))


async def _propose(quorum: Quorum) -> None:
    await quorum.propose(topic("orders"))


@pytest.mark.parametrize(("begin", "step"), [(_ask, "step"), (_propose, "ready")])
def test_who_breaks_the_turn_is_told_of_the_bug_alone(bench, monkeypatch, begin, step: str):
    async def break_down(quorum: Quorum) -> None:
        untaken: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: untaken.append(context))

        def bug(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(quorum.raft, step, bug)
        with pytest.raises(ZeroDivisionError):
            await begin(quorum)
        gc.collect()
        assert untaken == []

    bench.run(break_down, close=False)


def test_a_transaction_that_its_controller_did_not_end_is_dropped(bench):
    async def begin(quorum: Quorum) -> None:
        await quorum.propose([BeginTransactionRecord(name="t"), *topic("half")])

    bench.run(begin)

    async def go_on(quorum: Quorum) -> Image:
        await quorum.propose(topic("whole"))
        return quorum.image

    assert list(bench.run(go_on).topics) == ["whole"]


def test_a_directory_that_was_formatted_with_other_features_begins_with_them(bench):
    format_directory(bench.disk, 1, (VoterEndpoint("CONTROLLER", "localhost", 9093),), bench.random, 5, "cluster")
    records = [FeatureLevelRecord(name=n, feature_level=v) for n, v in (("metadata.version", 29), ("group.version", 1))]
    bench.disk.replace(BOOTSTRAP, encode_snapshot(records, {}, now_ms=5))
    assert bench.image().features == {"metadata.version": 29, "group.version": 1}


def test_the_directory_of_another_node_is_refused(bench):
    bench.image()
    bench.configs["node.id"] = "2"
    with pytest.raises(ConfigFault, match=r"node\.id: it is 2, but the data in log\.dirs is that of node 1"):
        bench.image()


def test_the_directory_of_another_cluster_is_refused(bench):
    bench.image()

    async def open_other() -> None:
        await Quorum.open(bench.disk, bench.config, bench.clock, bench.random, bench.jobs, cluster_id="other")

    with pytest.raises(ConfigFault, match="the data belongs to the cluster"):
        asyncio.run(open_other())


def test_a_directory_without_its_identity_is_not_formatted_over(bench):
    bench.image()
    bench.disk.remove(META)
    with pytest.raises(ConfigFault, match=r"no meta\.properties"):
        bench.image()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("version=0\ncluster.id=c\nnode.id=1\n", "has version 0, only 1 is known"),
        ("version=1\nnode.id=1\n", r"is damaged \('cluster\.id'\)"),
        ("version=1\n", r"is damaged \('cluster\.id'\)"),
        ("", r"is damaged \(no version\)"),
    ],
)
def test_a_directory_whose_identity_cannot_be_read_is_refused(bench, text, fault):
    bench.disk.replace(META, text.encode())
    with pytest.raises(ConfigFault, match=rf"meta\.properties {fault}"):
        bench.image()


def test_a_directory_from_before_directory_ids_is_given_one(bench):
    bench.disk.replace(META, b"#\n#Mon Nov 16 00:38:28 UTC 2026\nnode.id=1\nversion=1\ncluster.id=c\n")
    identity = read_identity(bench.disk, bench.random)
    assert read_identity(bench.disk, bench.random) == identity
    assert parse_properties(bench.disk.read(META).decode())["cluster.id"] == "c"


def test_a_node_of_several_is_not_formatted_without_the_cluster_s_id(bench):
    bench.configs["controller.quorum.voters"] = "1@a:9093,2@b:9093"
    with pytest.raises(ConfigFault, match=r"log\.dirs: .* set penstock\.cluster\.id"):
        bench.image()


def test_nobody_leads_a_quorum_of_several_alone(bench):
    bench.configs["controller.quorum.voters"] = "1@localhost:9093,2@localhost:1"
    bench.configs["penstock.cluster.id"] = "c"

    async def look(quorum: Quorum) -> None:
        assert (quorum.cluster_id, quorum.is_leader, quorum.leader_id) == ("c", False, -1)
        assert quorum.controller_address() is None
        with pytest.raises(KafkaError) as refusal:
            await quorum.propose(topic("a"))
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER

    bench.run(look)


def test_a_follower_sees_what_changed(bench):
    async def follow(quorum: Quorum) -> None:
        changed: list[list[bytes]] = []
        quorum.subscribe(lambda delta, image: changed.append(list(delta.changed_topics)))
        records = topic("orders")
        await quorum.propose(records)
        await quorum.propose([PartitionChangeRecord(partition_id=0, topic_id=records[0].topic_id, leader=1)])
        assert changed == [[records[0].topic_id], [records[0].topic_id]]

    bench.run(follow)
