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

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from penstock.base.errors import KafkaError
from penstock.core.log.log import Log
from penstock.core.replication.partition import Partition
from penstock.records.batch import SEQUENCE_MAX
from penstock.sim.cluster import Node
from penstock.sim.invariants import producers
from penstock.sim.invariants.batches import Batch, Reading
from penstock.sim.invariants.copies import Copy, base_of
from penstock.sim.invariants.indexes import Indexes
from penstock.sim.probes import Mark, PartitionProbe, moved_partitions, partitions_of, probe_of

_epoch = attrgetter("epoch")


class Violation(NamedTuple):
    invariant: str
    text: str
    time_us: int = 0
    event: int = 0

    def __str__(self) -> str:
        return f"{self.invariant} at {self.time_us / 1e6:.6f} s, event {self.event}: {self.text}"


class Ghost:
    def __init__(self, flush: bool, told: Callable[[str, str], None]) -> None:
        self.committed: dict[str, dict[int, Batch]] = {}
        """partition -> base offset -> batch, for all that any leader's watermark has passed"""
        self._line: dict[str, list[Batch]] = {}
        """the same in order"""
        self.high_watermark: dict[str, int] = {}
        """partition -> the furthest that any leader's watermark came"""
        self.copies: dict[tuple[int, str], Copy] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        """(partition, leader epoch) -> who leads"""
        self._newest: dict[str, int] = {}
        """partition -> the last epoch in which anybody was seen to lead"""
        self.epoch_starts: dict[tuple[str, int], int] = {}
        """(partition, leader epoch) -> where its leader's log ended when the epoch began"""
        self._lost: dict[tuple[int, str], int] = {}
        """(node, partition) -> how far a copy went on a disk, or in a page cache, that is lost: a leader was told of
        that, and may count it until it hears of the copy's next life"""
        self._consumed: dict[tuple[str, int], object] = {}
        """(partition, offset) -> what consumers saw there"""
        self._cleaned: dict[str, int] = {}
        """partition -> how far any copy was compacted: what is left below is for `compaction_ghost`"""
        self.cutting: dict[Log, int] = {}
        """where a cut that is not done will end the log"""
        self._marks: dict[int, dict[Partition, Mark]] = {}
        """node -> what was last seen of its partitions, in this life"""
        self.led: Callable[[Node, PartitionProbe], None] = lambda node, probe: None
        """called when a leader has moved"""
        self.committing: Callable[[str, Batch, Log], None] = lambda name, batch, log: None
        """called with each batch that is committed, once and in order"""
        self.moving: Callable[[Node, Copy, PartitionProbe], None] = lambda node, copy, probe: None
        """called when a copy has moved, before that is remembered"""
        self._flush = flush
        self._tell = told
        self._reading = Reading()
        self._indexes = Indexes()

    def touched(self, node: Node) -> None:
        """An event has happened in this broker. A log in the middle of a cut is not judged: that the power went there,
        or that the disk failed, is how anybody can see it so."""
        for probe in moved_partitions(node, self._marks.setdefault(node.id, {})):
            if probe.log in self.cutting:
                continue
            copy = self.copies.get((node.id, probe.name))
            if copy is None:
                copy = self.copies[node.id, probe.name] = Copy()
            self._moved(node, copy, probe)

    def resigns(self, node: Node, partition: Partition) -> None:
        """A leader is about to lead no more. One event may bring it several changes: the watermark may have moved."""
        probe = probe_of(partition)
        copy = self.copies.get((node.id, probe.name))
        if copy is not None and copy.led == probe.epoch:
            self._moved(node, copy, probe)

    def gone(self, node: Node, *, lost_power: bool) -> None:
        """The process is about to go; what is durable of its logs must come back."""
        self._marks.pop(node.id, None)
        # A log that was being cut when its disk failed, or the power, is shorter already than it says.
        cut = {one.name: self.cutting[one.log] for one in partitions_of(node) if one.log in self.cutting}
        for (node_id, name), copy in self.copies.items():
            if node_id == node.id:
                if node.ready:
                    copy.durable = min(copy.end, cut.get(name, copy.end))
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
                found = self._reading.read_again(where, probe.log, probe.start, probe.end)
            except (KafkaError, OSError) as fault:
                self._tell("S5", f"{where} cannot be read: {fault}")
                continue
            if probe.failure is None and probe.end < min(copy.durable, copy.end):
                self._tell("S1", f"{where} ends at {probe.end}, {copy.durable} was durable")
            self._see_cleaned(probe)
            self._check_epochs(where, probe, found)
            gone = self._take_found(where, copy, probe, found)
            had = self._reach(node.id, probe)
            copy.see(probe)
            copy.see_disk(probe)
            if self._reach(node.id, probe) < had:
                self._lost[node.id, probe.name] = max(had, self._lost.get((node.id, probe.name), 0))
            self._cut(where, probe, gone)
            self._check_producers(where, copy, probe, copy.recent)
            self.check_indexes(node.host, probe)
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
        where = f"{host} {probe.name}"
        for fault in self._indexes.faults(where, probe.log):
            self._tell("S2", f"{where}: {fault}")

    def reach(self, node_id: int, name: str, flushes: bool) -> int:
        """How far a copy of this partition goes, as far as was seen: on its disk where only that counts, else in its
        page cache too."""
        copy = self.copies.get((node_id, name))
        if copy is None:
            return 0
        return copy.on_disk if self._flush and flushes else max(copy.end, copy.durable)

    def _check_epochs(self, where: str, probe: PartitionProbe, found: list[Batch]) -> None:
        """Epochs ascend along a log and in what it knows of them: where the first and the last batch of an epoch are
        known for what they are, all between are."""
        for epoch, batches in groupby(found, _epoch):
            of_epoch = list(batches)
            for batch in (of_epoch[0], of_epoch[-1]):
                known = probe.log.epochs.at(batch.base)
                if known != epoch:
                    self._tell("R16", f"{where} holds {batch}, and takes it for one of epoch {known}")
                    return

    def _take_found(self, where: str, copy: Copy, probe: PartitionProbe, found: list[Batch]) -> list[Batch]:
        """A copy as its disk has it now; what it had and has no more. What was being written when the power went may be
        there whole, beyond the end that anybody has seen. What is left of a log that is compacted is judged by
        `compaction_ghost`."""
        new = bisect_left(found, copy.end, key=base_of)
        gone = copy.cut(probe.end)
        if probe.log.config.is_compacted or found[:new] == copy.batches:
            for batch in found[new:]:
                copy.add(batch)
            return gone
        known = {batch.base: batch for batch in copy.batches}
        strange = next((one for one in found[:new] if known.get(one.base) != one), None)
        if strange is not None:
            self._tell("S1", f"{where} has {strange} that it did not have before")
        left = set(found)
        gone += [one for one in copy.batches if one not in left]
        copy.set(found)
        return gone

    def _moved(self, node: Node, copy: Copy, probe: PartitionProbe) -> None:
        where = f"{node.host} {probe.name}"
        self._see_cleaned(probe)
        copy.see_disk(probe)
        if probe.start > copy.end:
            self._begun_anew(where, copy, probe)
        if probe.end > copy.end:
            try:
                self._grown(where, copy, probe)
            except KafkaError as fault:
                self._tell("S4", f"{where}: what was written cannot be read: {fault}")
        elif probe.end < copy.end:
            if probe.leads:
                self._tell("R14", f"{where} is a leader's log and went back from {copy.end} to {probe.end}")
            self._cut(where, probe, copy.cut(probe.end))
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
            self.led(node, probe)
        self.moving(node, copy, probe)
        copy.see(probe)

    def _begun_anew(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        """A follower had less than its leader has kept, and goes on where that one begins."""
        if probe.leads or probe.start > self.high_watermark.get(probe.name, 0):
            self._tell("R14", f"{where} begins at {probe.start}, and had come to {copy.end}")
        copy.end = probe.start

    def _led(self, node: Node, copy: Copy, probe: PartitionProbe) -> None:
        """It leads in an epoch that is new to it."""
        other = self._leaders.setdefault((probe.name, probe.epoch), node.id)
        if other != node.id:
            self._tell("R1", f"{node.host} leads {probe.name} in epoch {probe.epoch}, and broker {other} does")
        self.epoch_starts.setdefault((probe.name, probe.epoch), probe.epoch_start)
        self._newest[probe.name] = max(probe.epoch, self._newest.get(probe.name, 0))
        if self._is_late(probe):
            return
        line = self._line.get(probe.name, [])
        if copy.batches[: len(line)] == line:
            return
        floor = max(probe.start, self._cleaned.get(probe.name, 0))
        for batch in line[bisect_left(line, floor, key=base_of) :]:
            if not copy.has(batch):
                self._tell("R2", f"{node.host} leads {probe.name} without {batch}, which was committed")
                return

    def _is_late(self, probe: PartitionProbe) -> bool:
        """It leads, and does not know yet that another does: what that one has committed says nothing of this one."""
        return probe.epoch < self._newest.get(probe.name, 0)

    def _reach(self, node_id: int, probe: PartitionProbe) -> int:
        return self.reach(node_id, probe.name, probe.flushes)

    def _see_cleaned(self, probe: PartitionProbe) -> None:
        if probe.log.clean_offset:
            self._cleaned[probe.name] = max(probe.log.clean_offset, self._cleaned.get(probe.name, 0))

    def _cut(self, where: str, probe: PartitionProbe, gone: list[Batch]) -> None:
        """A copy has become shorter."""
        floor = max(probe.start, self._cleaned.get(probe.name, 0))
        known = self.committed.get(probe.name, {})
        for batch in gone:
            if batch.base >= floor and known.get(batch.base) == batch and not self._is_held(probe.name, batch):
                self._tell("R12", f"{where} ends at {probe.end}, and no copy has {batch}, which was committed")
                return

    def _is_held(self, name: str, batch: Batch) -> bool:
        return any(copy.has(batch) for (_, of), copy in self.copies.items() if of == name)

    def _check_producers(self, where: str, copy: Copy, probe: PartitionProbe, changed: Iterable[int]) -> None:
        for fault in producers.faults(probe.log, copy.recent, changed):
            self._tell("P4", f"{where}: {fault}")

    def _isr_changed(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        committed = 0 if self._is_late(probe) else self.high_watermark.get(probe.name, 0)
        for member in probe.isr:
            had = self._lost.get((member, probe.name), 0)  # where it has not come back, it counts with that
            reach = self._reach(member, probe) if (member, probe.name) in self.copies else had
            if member not in copy.isr and reach < committed:
                self._tell("R3", f"{where}: broker {member} joins the ISR and has not all up to {committed}")
            if member not in copy.isr and (member, probe.name) in self.copies:
                self._lost.pop((member, probe.name), None)  # its leader knows this life
        copy.isr = probe.isr

    def _leader_moved(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        # One event may bring several changes of the ISR, and the watermark may move between them.
        same_isr = probe.epoch == copy.epoch and probe.partition_epoch == copy.partition_epoch
        if probe.under_min_isr and same_isr and probe.high_watermark > copy.high_watermark:
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
        known, line = self.committed.setdefault(probe.name, {}), self._line.setdefault(probe.name, [])
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
            if other is batch:
                line.append(batch)
            elif other != batch:
                self._tell("R4", f"{where} commits {batch}, {other} was committed there")
            self.committing(probe.name, batch, probe.log)

    def _grown(self, where: str, copy: Copy, probe: PartitionProbe) -> None:
        changed: dict[int, None] = {}
        for batch in self._reading.read(probe.log, copy.end, probe.end):
            last = copy.batches[-1] if copy.batches else None
            if batch.base != copy.end and last is not None and not probe.log.config.is_compacted:
                self._tell("R14", f"{where}: a batch at {batch.base} follows the end {copy.end}")
            if last is not None and batch.epoch < last.epoch:
                self._tell("R1", f"{where}: epoch {batch.epoch} at {batch.base} follows {last.epoch}")
            if batch.producer[0] >= 0:
                self._check_sequence(where, copy.newest.get(batch.producer[0]), batch)
                changed[batch.producer[0]] = None
            copy.add(batch)
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
