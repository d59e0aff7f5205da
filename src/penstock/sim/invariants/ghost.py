"""What is true of a run, whatever the brokers say: every batch that any log took, and every one that was committed.

Kept by looking at the broker that an event touched, and there only at the partitions that moved. What it finds wrong
are violations, each with the invariant's number:

R1   one leader an epoch; along a log they never go back
R3   who joins the ISR has all that was committed
R2   who leads has all that was committed            R4   no two logs differ below their watermarks
R6   a leader's watermark never goes back, nor past what a member of the ISR has (has synced, with flush.messages=1)
R11  an ack means that it is committed
R12  what is committed is on some copy, also while nobody leads
R13  what a consumer saw at an offset was committed, and stays there
R14  offsets are dense, a log grows at its end        P1   a producer's batches are there once and in order
R16  the epochs that a log knows are those of its batches
P4   what a log knows of its producers is what its batches say
S2   every entry of an index is what its log says
S4   what was written is read back as it was           S5   nothing that was durable is damaged
S1   a log that comes back has what was durable, and nothing that was not written
S3   with flush.messages=1 nothing counts that is not synced
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from penstock.base.errors import KafkaError
from penstock.core.log.log import Log
from penstock.core.replication.partition import Partition
from penstock.records.batch import SEQUENCE_MAX
from penstock.sim.cluster import Node
from penstock.sim.invariants import indexes, producers
from penstock.sim.invariants.batches import Batch, read_batches
from penstock.sim.probes import Mark, PartitionProbe, moved_partitions, partitions_of


class Violation(NamedTuple):
    invariant: str
    text: str
    time_us: int = 0
    event: int = 0

    def __str__(self) -> str:
        return f"{self.invariant} at {self.time_us / 1e6:.6f} s, event {self.event}: {self.text}"


class Aborted(NamedTuple):
    """A transaction that a log says was aborted."""

    producer_id: int
    first: int
    marker: int


class Copy:
    """One replica's log as it was last seen."""

    __slots__ = (
        "aborted",
        "batches",
        "durable",
        "end",
        "epoch",
        "high_watermark",
        "isr",
        "last_stable",
        "led",
        "newest",
        "on_disk",
        "recent",
        "synced",
    )

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.newest: dict[int, Batch] = {}
        """producer id -> its last batch"""
        self.recent: dict[int, producers.Recent] = {}
        """producer id -> its epoch, and the batches by which it would know a repeated one"""
        self.aborted: list[Aborted] = []
        self.last_stable = 0
        self.end = 0
        self.high_watermark = 0
        self.synced = 0
        self.epoch = -1
        self.led = -1
        """the epoch in which it was last seen leading"""
        self.isr: tuple[int, ...] = ()
        self.durable = 0
        """what was synced, or is in a page cache that still stands"""
        self.on_disk = 0
        """what was synced, by whichever life of the broker"""

    def set(self, batches: list[Batch]) -> None:
        self.batches = batches
        self.newest, self.recent, self.aborted = {}, {}, []
        for batch in batches:
            self.learn(batch)

    def learn(self, batch: Batch) -> None:
        producer_id = batch.producer[0]
        if producer_id >= 0:
            before = self.recent.get(producer_id)
            if batch.commits is False and before is not None and before.open_since >= 0:
                self.aborted.append(Aborted(producer_id, before.open_since, batch.base))
            self.recent[producer_id] = producers.after(before, batch)
            if not batch.control:
                self.newest[producer_id] = batch

    def see(self, probe: PartitionProbe) -> None:
        self.end, self.synced, self.high_watermark = probe.end, probe.synced, probe.high_watermark
        self.epoch, self.last_stable = probe.epoch, probe.last_stable

    def see_disk(self, probe: PartitionProbe) -> None:
        self.on_disk = min(max(self.on_disk, probe.synced), probe.end)


class Ghost:
    def __init__(self, flush: bool, told: Callable[[str, str], None]) -> None:
        self.committed: dict[str, dict[int, Batch]] = {}
        """partition -> base offset -> batch, for all that any leader's watermark has passed"""
        self.high_watermark: dict[str, int] = {}
        """partition -> the furthest that any leader's watermark came"""
        self.copies: dict[tuple[int, str], Copy] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        """(partition, leader epoch) -> who leads"""
        self.epoch_starts: dict[tuple[str, int], int] = {}
        """(partition, leader epoch) -> where its leader's log ended when the epoch began"""
        self._lost: dict[tuple[int, str], int] = {}
        """(node, partition) -> how far a copy went on a disk that is lost"""
        self._consumed: dict[tuple[str, int], object] = {}
        """(partition, offset) -> what consumers saw there"""
        self._cleaned: dict[str, int] = {}
        """partition -> how far any copy was compacted: what is left below is for `compaction_ghost`"""
        self._marks: dict[int, dict[Partition, Mark]] = {}
        """node -> what was last seen of its partitions, in this life"""
        self.led: Callable[[Node, str, int], None] = lambda node, topic, index: None
        """called when a leader has moved, with its topic and index"""
        self.committing: Callable[[str, Batch, Log], None] = lambda name, batch, log: None
        """called with each batch that is committed, once and in order"""
        self.moving: Callable[[Node, Copy, PartitionProbe], None] = lambda node, copy, probe: None
        """called when a copy has moved, before that is remembered"""
        self._flush = flush
        self._tell = told

    def touched(self, node: Node) -> None:
        """An event has happened in this broker."""
        for probe in moved_partitions(node, self._marks.setdefault(node.id, {})):
            copy = self.copies.get((node.id, probe.name))
            if copy is None:
                copy = self.copies[node.id, probe.name] = Copy()
            self._moved(node, copy, probe)

    def gone(self, node: Node, *, lost_power: bool) -> None:
        """The process is about to go; what is durable of its logs must come back."""
        self._marks.pop(node.id, None)
        for (node_id, _), copy in self.copies.items():
            if node_id == node.id:
                if node.ready:
                    copy.durable = copy.end
                if lost_power:
                    copy.durable = min(copy.durable, copy.synced)

    def wiped(self, node: Node) -> None:
        """It lost its disk. Leaders know of what it had, and may count it until they hear of that."""
        for key in [key for key in self.copies if key[0] == node.id]:
            self._lost[key] = self.copies.pop(key).end

    def opened(self, node: Node) -> None:
        """The broker has read its disk: every log is a whole-batch prefix of what it was, with all that was durable."""
        for probe in partitions_of(node):
            copy = self.copies.setdefault((node.id, probe.name), Copy())
            where = f"{node.host} {probe.name}"
            try:
                found = list(read_batches(probe.log, probe.start, probe.end))
            except KafkaError as fault:
                self._tell("S5", f"{where} cannot be read: {fault}")
                continue
            if probe.failure is None and probe.end < min(copy.durable, copy.end):
                self._tell("S1", f"{where} ends at {probe.end}, {copy.durable} was durable")
            self._see_cleaned(probe)
            wrong = next((batch for batch in found if probe.log.epochs.at(batch.base) != batch.epoch), None)
            if probe.log.config.is_compacted:
                found = _as_appended(copy, probe.end, found)
            known = {batch.base: batch for batch in copy.batches}
            # What was being written when the power went may be there whole, beyond the end that anybody has seen.
            strange = next((one for one in found if one.base < copy.end and known.get(one.base) != one), None)
            if strange is not None:
                self._tell("S1", f"{where} has {strange} that it did not have before")
            shorter = probe.end < copy.end
            copy.set(found)
            copy.see(probe)
            copy.see_disk(probe)
            if shorter:
                self._cut(where, probe)
            self._check_producers(where, copy, probe, copy.recent)
            self.check_indexes(node.host, probe)
            if wrong is not None:
                epoch = probe.log.epochs.at(wrong.base)
                self._tell("R16", f"{where} holds {wrong}, and takes it for one of epoch {epoch}")
            if probe.leads:
                self._leader_moved(where, copy, probe)

    def acked(self, partition: str, offset: int) -> None:
        if self.high_watermark.get(partition, 0) <= offset:
            self._tell("R11", f"{partition} offset {offset} was acked, and no watermark has passed it")

    def consumed(self, partition: str, offset: int, value: object) -> None:
        if self.high_watermark.get(partition, 0) <= offset:
            self._tell("R13", f"{partition} offset {offset} was read, and no watermark has passed it")
        seen = self._consumed.setdefault((partition, offset), value)
        if seen != value:
            self._tell("R13", f"{partition} offset {offset} was read as {seen!r}, and now as {value!r}")

    def check_indexes(self, host: str, probe: PartitionProbe) -> None:
        for fault in indexes.faults(probe.log):
            self._tell("S2", f"{host} {probe.name}: {fault}")

    def _moved(self, node: Node, copy: Copy, probe: PartitionProbe) -> None:
        where = f"{node.host} {probe.name}"
        self._see_cleaned(probe)
        copy.see_disk(probe)
        if probe.end > copy.end:
            try:
                self._grown(where, copy, probe)
            except KafkaError as fault:
                self._tell("S4", f"{where}: what was written cannot be read: {fault}")
        elif probe.end < copy.end:
            if probe.leads:
                self._tell("R14", f"{where} is a leader's log and went back from {copy.end} to {probe.end}")
            copy.set([batch for batch in copy.batches if batch.next <= probe.end])
            self._cut(where, probe)
            self._check_producers(where, copy, probe, copy.recent)
        if not probe.start <= probe.high_watermark <= probe.end:
            self._tell("R6", f"{where}: the watermark {probe.high_watermark} is not in {probe.start} to {probe.end}")
        if probe.leads:
            if probe.epoch != copy.led:
                copy.led = probe.epoch
                self._led(node, copy, probe)
            if probe.isr != copy.isr:
                self._isr_changed(where, copy, probe)
            self._leader_moved(where, copy, probe)
            topic, _, index = probe.name.rpartition("-")
            self.led(node, topic, int(index))
        self.moving(node, copy, probe)
        copy.see(probe)

    def _led(self, node: Node, copy: Copy, probe: PartitionProbe) -> None:
        """It leads in an epoch that is new to it."""
        other = self._leaders.setdefault((probe.name, probe.epoch), node.id)
        if other != node.id:
            self._tell("R1", f"{node.host} leads {probe.name} in epoch {probe.epoch}, and broker {other} does")
        self.epoch_starts.setdefault((probe.name, probe.epoch), probe.epoch_start)
        own = {batch.base: batch for batch in copy.batches}
        floor = max(probe.start, self._cleaned.get(probe.name, 0))
        for batch in self.committed.get(probe.name, {}).values():
            if batch.base >= floor and own.get(batch.base) != batch:
                self._tell("R2", f"{node.host} leads {probe.name} without {batch}, which was committed")
                return

    def reach(self, node_id: int, name: str, flushes: bool) -> int:
        """How far a copy of this partition goes, as far as was seen: on its disk where only that counts, else in its
        page cache too."""
        copy = self.copies.get((node_id, name))
        if copy is None:
            return 0
        return copy.on_disk if self._flush and flushes else max(copy.end, copy.durable)

    def _reach(self, node_id: int, probe: PartitionProbe) -> int:
        return self.reach(node_id, probe.name, probe.flushes)

    def _see_cleaned(self, probe: PartitionProbe) -> None:
        if probe.log.clean_offset:
            self._cleaned[probe.name] = max(probe.log.clean_offset, self._cleaned.get(probe.name, 0))

    def _cut(self, where: str, probe: PartitionProbe) -> None:
        """A copy has become shorter."""
        if probe.end >= self.high_watermark.get(probe.name, 0):
            return
        held = {batch for (_, name), copy in self.copies.items() if name == probe.name for batch in copy.batches}
        for batch in self.committed.get(probe.name, {}).values():
            if batch not in held and batch.base >= max(probe.start, self._cleaned.get(probe.name, 0)):
                self._tell("R12", f"{where} ends at {probe.end}, and no copy has {batch}, which was committed")
                return

    def _check_producers(self, where: str, copy: Copy, probe: PartitionProbe, changed: Iterable[int]) -> None:
        for fault in producers.faults(probe.log, copy.recent, changed):
            self._tell("P4", f"{where}: {fault}")

    def _isr_changed(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        committed = self.high_watermark.get(probe.name, 0)
        for member in probe.isr:
            had = self._lost.get((member, probe.name), 0)  # where it has not come back, it counts with that
            reach = self._reach(member, probe) if (member, probe.name) in self.copies else had
            if member not in copy.isr and reach < committed:
                self._tell("R3", f"{where}: broker {member} joins the ISR and has not all up to {committed}")
        copy.isr = probe.isr

    def _leader_moved(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        if probe.under_min_isr and probe.epoch == copy.epoch and probe.high_watermark > copy.high_watermark:
            self._tell("R6", f"{where}: the watermark moves while too few copies are in sync")
        if probe.high_watermark < copy.high_watermark and probe.epoch == copy.epoch:
            self._tell("R6", f"{where}: the watermark went back from {copy.high_watermark} to {probe.high_watermark}")
        for member in probe.isr if probe.high_watermark > copy.high_watermark else ():
            if max(self._reach(member, probe), self._lost.get((member, probe.name), 0)) < probe.high_watermark:
                self._tell("R6", f"{where}: the watermark is {probe.high_watermark}, broker {member} has less")
        if self._flush and probe.flushes and probe.high_watermark > probe.synced:
            self._tell("S3", f"{where}: the watermark is {probe.high_watermark}, only {probe.synced} is synced")
        if probe.high_watermark > self.high_watermark.get(probe.name, 0):
            self._commit(where, copy, probe)

    def _commit(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        known = self.committed.setdefault(probe.name, {})
        before = self.high_watermark.get(probe.name, 0)
        new: list[Batch] = []
        for batch in reversed(copy.batches):
            if batch.next <= before:
                break
            if batch.next <= probe.high_watermark:
                new.append(batch)
        self.high_watermark[probe.name] = probe.high_watermark
        for batch in reversed(new):
            other = known.setdefault(batch.base, batch)
            if other != batch:
                self._tell("R4", f"{where} commits {batch}, {other} was committed there")
            self.committing(probe.name, batch, probe.log)

    def _grown(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        changed: dict[int, None] = {}
        for batch in read_batches(probe.log, copy.end, probe.end):
            last = copy.batches[-1] if copy.batches else None
            if batch.base != copy.end and last is not None and not probe.log.config.is_compacted:
                self._tell("R14", f"{where}: a batch at {batch.base} follows the end {copy.end}")
            if last is not None and batch.epoch < last.epoch:
                self._tell("R1", f"{where}: epoch {batch.epoch} at {batch.base} follows {last.epoch}")
            if batch.producer[0] >= 0:
                self._check_sequence(where, copy.newest.get(batch.producer[0]), batch)
                copy.learn(batch)
                changed[batch.producer[0]] = None
            copy.batches.append(batch)
            copy.end = batch.next
        self._check_producers(where, copy, probe, changed)

    def _check_sequence(self, where: str, before: Batch | None, batch: Batch) -> None:
        """Against the newest batch of the same producer; a broker forgets none within a run."""
        if before is None or batch.control or batch.sequence < 0:
            return
        follows = (before.sequence + before.next - before.base) & SEQUENCE_MAX
        same_epoch = before.producer[1] == batch.producer[1]
        if (same_epoch and batch.sequence != follows) or before.producer[1] > batch.producer[1]:
            self._tell("P1", f"{where}: {batch} follows {before}")


def _as_appended(copy: Copy, end: int, found: list[Batch]) -> list[Batch]:
    """Of a log that is compacted: what is left of it is judged by `compaction_ghost`."""
    return [one for one in copy.batches if one.next <= end] + [one for one in found if one.base >= copy.end]
