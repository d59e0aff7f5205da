"""Partitions on disks in memory, led and followed without a network in between."""

from __future__ import annotations

from random import Random

from penstock.base.ids import TopicPartition
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.metadata.image import Broker
from penstock.core.metadata.image import Partition as Described
from penstock.core.replication.fetch_session import FetchPartition, FetchSession
from penstock.core.replication.isr import IsrChange
from penstock.core.replication.leading import Cluster
from penstock.core.replication.partition import Fetched, Partition
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk

NAME = TopicPartition("t", 0)
TOPIC_ID = b"t" * 16
LAG_MAX_MS = 10_000
EPOCHS = {1: 101, 2: 102, 3: 103}
"""broker epochs"""


def described(leader: int = 1, *, epoch: int = 0, version: int = 0, isr: tuple[int, ...] = (1, 2, 3)) -> Described:
    return Described((1, 2, 3), isr, leader, epoch, version)


def broker(broker_id: int, *, epoch: int | None = None, fenced: bool = False, rack: str | None = None) -> Broker:
    return Broker(broker_id, EPOCHS[broker_id] if epoch is None else epoch, b"i" * 16, (), (), rack, fenced)


def cluster(node_id: int = 1) -> Cluster:
    made = Cluster(node_id, LAG_MAX_MS)
    made.brokers = {broker_id: broker(broker_id) for broker_id in EPOCHS}
    return made


def partition(node_id: int = 1, *, watermark: int = 0, **config: int) -> Partition:
    log = Log.open(SimDisk(Random(1)), str(NAME), LogConfig(**config), now_ms=0)
    return Partition(NAME, TOPIC_ID, log, cluster(node_id), high_watermark=watermark)


def leader(isr: tuple[int, ...] = (1, 2, 3), *, epoch: int = 0, records: int = 0, **config: int) -> Partition:
    """Broker 1 leads; `records` were there before it did."""
    made = partition(**config)
    if records:
        write(made.log, records, epoch=max(epoch - 1, 0))
    made.lead(described(epoch=epoch, isr=isr))
    return made


def sync(log: Log) -> None:
    work = log.unsynced()
    assert work is not None
    work.run()
    log.on_synced(work)


def write(log: Log, count: int = 1, *, epoch: int = 0) -> None:
    for _ in range(count):
        batch = build_batch([Record.of(b"k", b"v", 0)])
        log.append(batch, 0, len(batch), leader_epoch=epoch, now_ms=0)


def append(led: Partition, count: int = 1, *, to_all: bool = False) -> None:
    for _ in range(count):
        batch = build_batch([Record.of(b"k", b"v", 0)])
        led.append(batch, 0, len(batch), now_ms=0, to_all=to_all)
    led.advance()


def place(offset: int, *, epoch: int = 0, last_epoch: int = -1) -> FetchPartition:
    wanted = FetchSession(1, True, 0).put(TOPIC_ID, 0, 0)
    wanted.fetch_offset, wanted.leader_epoch, wanted.last_fetched_epoch = offset, epoch, last_epoch
    wanted.log_start_offset = 0
    return wanted


def fetch(
    led: Partition,
    follower: int,
    offset: int,
    *,
    now_ms: int = 0,
    broker_epoch: int | None = None,
    last_epoch: int = -1,
) -> IsrChange | None:
    """A follower's fetch as the shell hears it; what the leader wants of the controller."""
    wanted = place(offset, epoch=led.leader_epoch, last_epoch=last_epoch)
    life = EPOCHS[follower] if broker_epoch is None else broker_epoch
    if led.meet(wanted, follower, life) is not None:
        return None
    change = led.heard(wanted, life, now_ms)
    led.advance()
    led.check()
    return change


def copy(led: Partition, follower: Partition) -> Fetched:
    """One round of a follower: what it fetches is appended."""
    own = follower.log
    wanted = place(own.end_offset, epoch=follower.leader_epoch, last_epoch=own.epochs.latest)
    node_id = follower.cluster.node_id
    diverging = led.meet(wanted, node_id, EPOCHS[node_id])
    if diverging is not None:
        return led.standing(diverging)
    led.heard(wanted, EPOCHS[node_id], 0)
    led.advance()
    fetched = led.copy(wanted, 1_000_000, True)
    data = bytearray(b"".join(piece.read() for piece in fetched.slices))
    if data:
        follower.accept(data, 0, len(data), now_ms=0)
    follower.told(led.high_watermark, fetched.log_start_offset)
    return fetched
