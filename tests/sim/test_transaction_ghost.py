"""T1: when a reader of committed records may see a record of a transaction."""

from __future__ import annotations

from random import Random

from penstock.base.ids import TRANSACTIONS_TOPIC, TopicPartition
from penstock.core.log.config import LogConfig
from penstock.core.log.log import Log
from penstock.core.transactions.records import transaction_record
from penstock.core.transactions.states import Status
from penstock.core.transactions.transaction import Transaction
from penstock.records.builder import build_batch
from penstock.records.record import Record
from penstock.sim.disk import SimDisk
from penstock.sim.invariants.batches import Batch, read_batches
from penstock.sim.invariants.transaction_ghost import TransactionGhost

DATA = Batch(
    base=0, next=2, epoch=1, crc=0, producer=(7, 3), sequence=0, transactional=True, control=False, commits=None
)
MARKER = Batch(
    base=2, next=3, epoch=1, crc=0, producer=(7, 4), sequence=-1, transactional=True, control=True, commits=True
)


class Bench:
    """Producer 7 has written two records in epoch 3, which are committed; its transaction is open."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.ghost = TransactionGhost(lambda invariant, text: self.told.append(invariant))
        self.log = Log.open(SimDisk(Random(1)), f"{TRANSACTIONS_TOPIC}-0", LogConfig(), now_ms=1_000)
        self.decide(Status.ONGOING, epoch=3)
        self.ghost.committed("orders-0", DATA, self.log)

    def decide(self, status: Status, epoch: int = 4) -> None:
        """The coordinator's next state is committed."""
        now = Transaction("mover", 7, epoch, 60_000, status, (TopicPartition("orders", 0),))
        record = transaction_record(now, 2)
        at = self.log.end_offset
        batch = build_batch([Record.of(record.key, record.value, 1_000)], base_offset=at, leader_epoch=0)
        self.log.append(batch, 0, len(batch), leader_epoch=0, now_ms=1_000, origin="coordinator")
        for one in read_batches(self.log, at, self.log.end_offset):
            self.ghost.committed(f"{TRANSACTIONS_TOPIC}-0", one, self.log)

    def read(self) -> list[str]:
        self.ghost.consumed("orders-0", 1)
        return self.told


def test_not_while_it_is_open() -> None:
    assert Bench().read() == ["T1"]


def test_once_its_coordinator_has_decided_to_commit_it() -> None:
    bench = Bench()
    bench.decide(Status.PREPARE_COMMIT)
    assert bench.read() == []


def test_not_where_its_coordinator_has_decided_to_abort_it() -> None:
    bench = Bench()
    bench.decide(Status.PREPARE_ABORT)
    assert bench.read() == ["T1"]


def test_what_is_decided_of_a_later_transaction_says_nothing_of_this_one() -> None:
    bench = Bench()
    for status, epoch in ((Status.PREPARE_ABORT, 4), (Status.COMPLETE_ABORT, 4), (Status.ONGOING, 5)):
        bench.decide(status, epoch)
    bench.decide(Status.PREPARE_COMMIT, epoch=6)
    assert bench.read() == ["T1"]


def test_once_a_marker_of_its_commit_is_committed() -> None:
    bench = Bench()
    bench.decide(Status.PREPARE_COMMIT)
    bench.ghost.committed("orders-0", MARKER, bench.log)
    bench.decide(Status.COMPLETE_COMMIT)
    assert bench.read() == []
