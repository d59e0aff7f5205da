"""What is true of the metadata quorum, whatever its nodes say.

K1  one leader an epoch                        K2  epochs never go back, a vote is given once an epoch
K3  what is committed is synced at a majority  K7  nothing that is committed and on a disk is cut off, and a log that
                                                   does not begin at 0 has a snapshot of what came before
K8  one change of voters at a time             K4, K5: see `metadata_lines`
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.errors import KafkaError
from penstock.sim.cluster import Node
from penstock.sim.invariants.batches import read_batches
from penstock.sim.invariants.metadata_lines import Lines
from penstock.sim.probes import Mark, QuorumProbe, metadata_log_of, moved_quorum


class QuorumGhost:
    def __init__(self, told: Callable[[str, str], None]) -> None:
        self._tell = told
        self._lines = Lines(told)
        self._leaders: dict[int, int] = {}
        """epoch -> who led it"""
        self._votes: dict[tuple[int, int], int] = {}
        """(node, epoch) -> for whom"""
        self._seen: dict[int, QuorumProbe] = {}
        """node -> as it was last seen, in this life or an earlier one"""
        self._synced: dict[int, int] = {}
        """node -> what is on its disk. A log that is opened again counts from anew, and is where it was: a leader may
        hear of what a voter had synced after that voter lost its power"""
        self._marks: dict[int, Mark] = {}
        self._lost: dict[int, int] = {}
        """node -> what it had synced on a disk that is lost"""
        self._counted: dict[int, list[tuple[int, ...]]] = {}
        """leader -> those who voted when its watermark last moved; two sets where they changed in that very event, and
        nobody can tell which of the two came first"""

    def touched(self, node: Node) -> None:
        probe = moved_quorum(node, self._marks)
        if probe is None:
            return
        before = self._seen.get(node.id)
        if probe == before:
            return
        self._seen[node.id] = probe
        self._synced[node.id] = max(probe.synced, min(self._synced.get(node.id, 0), probe.end))
        if before is not None:
            self._check_past(node, before, probe)
        self._check_now(node, probe)
        if probe.voted >= 0 and self._votes.setdefault((node.id, probe.epoch), probe.voted) != probe.voted:
            self._tell("K2", f"{node.host} votes for {probe.voted} in epoch {probe.epoch}, after another")
        if probe.leads:
            if self._leaders.setdefault(probe.epoch, node.id) != node.id:
                self._tell("K1", f"{node.host} leads epoch {probe.epoch}, and broker {self._leaders[probe.epoch]} did")
            self._check_majority(node, before, probe)
        self._follow(node, before, probe)

    def gone(self, node: Node) -> None:
        """The next life reads its log again."""
        self._marks.pop(node.id, None)
        self._lines.forget(node.id)

    def wiped(self, node: Node) -> None:
        """It lost its disk: who votes under this id from now on is another. What it had counted, and does still."""
        self._seen.pop(node.id, None)
        self._lost[node.id] = self._synced.pop(node.id, 0)
        self._votes = {vote: whom for vote, whom in self._votes.items() if vote[0] != node.id}

    def _follow(self, node: Node, before: QuorumProbe | None, probe: QuorumProbe) -> None:
        """What its log says now."""
        begins = self._lines.see(node.id, probe.start, probe.end)
        if begins < probe.end:
            try:
                for batch in read_batches(metadata_log_of(node), begins, probe.end):
                    self._lines.grew(node, batch)
            except KafkaError as fault:
                self._tell("K4", f"{node.host}: what was written cannot be read: {fault}")
        if probe.leads:
            if before is None or not before.leads or before.epoch != probe.epoch:
                self._lines.led(node, probe.epoch)
            self._lines.commit(node, probe.epoch, probe.high_watermark)

    def _check_past(self, node: Node, before: QuorumProbe, probe: QuorumProbe) -> None:
        if probe.epoch < before.epoch:
            self._tell("K2", f"{node.host} goes back from epoch {before.epoch} to {probe.epoch}")
        kept = min(before.high_watermark, before.synced)
        if probe.end < kept:
            self._tell("K7", f"{node.host} ends at {probe.end}, {kept} was committed and on its disk")

    def _check_now(self, node: Node, probe: QuorumProbe) -> None:
        if probe.start > 0 and (probe.snapshot is None or probe.snapshot.offset < probe.start):
            self._tell("K7", f"{node.host} begins at {probe.start}, its newest snapshot is {probe.snapshot}")
        if probe.leads and probe.voters_changing > 1:  # a follower hears of what is committed later
            self._tell("K8", f"{node.host} has {probe.voters_changing} changes of voters that are not committed")

    def _check_majority(self, node: Node, before: QuorumProbe | None, probe: QuorumProbe) -> None:
        """By the voters whose syncs were counted: one that is taken out later, because its disk is lost, takes nothing
        back of what it was needed for. The change that takes it out is only committed when a majority of those who are
        left has all that came before it."""
        led = before if before is not None and before.leads and before.epoch == probe.epoch else None
        if led is None or probe.high_watermark > led.high_watermark:
            changed = led is not None and led.voters != probe.voters and probe.voters_changing > 0
            self._counted[node.id] = [probe.voters, led.voters] if led is not None and changed else [probe.voters]
        reached = max(map(self._synced_at_majority, self._counted[node.id]))
        if probe.high_watermark > reached:
            self._tell("K3", f"{node.host} has committed {probe.high_watermark}, a majority has synced {reached}")

    def _synced_at_majority(self, voters: tuple[int, ...]) -> int:
        ends = [max(self._synced.get(voter, 0), self._lost.get(voter, 0)) for voter in voters]
        return sorted(ends, reverse=True)[len(ends) // 2]
