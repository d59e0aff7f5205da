"""The `sticky` assignor: every member as many active tasks as any other, give or take one; copies of stateful tasks in
other processes; and as little as can be moves, first of all where there is state.

A member is a thread; members of one process share its disk. So a process has a task once, in whatever role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from penstock.core.groups.streams.tasks import Task, Tasks, each, gathered

NAME = "sticky"


class Candidate(NamedTuple):
    process_id: str
    has: Tasks
    """what it was to have so far"""


def assign(
    tasks: Mapping[str, int], stateful: Iterable[str], candidates: Mapping[str, Candidate], standbys: int
) -> dict[str, Tasks]:
    """By member id. `tasks`: how many each subtopology has; `standbys`: how many copies of each stateful task."""
    if not candidates:
        return {}
    placing = _Placing(candidates)
    everything = [(name, number) for name in sorted(tasks) for number in range(tasks[name])]
    placing.place_active(everything)
    kept = frozenset(stateful)
    if standbys:
        placing.place_standbys([task for task in everything if task[0] in kept], standbys)
    return {
        member: Tasks(gathered(placing.active[member]), gathered(placing.standby[member]))
        for member in sorted(candidates)
    }


class _Placing:
    def __init__(self, candidates: Mapping[str, Candidate]) -> None:
        self.members = sorted(candidates)
        self.process = {member: candidates[member].process_id for member in self.members}
        self.threads: dict[str, list[str]] = {}
        """process -> its members"""
        for member in self.members:
            self.threads.setdefault(self.process[member], []).append(member)
        self.active: dict[str, list[Task]] = {member: [] for member in self.members}
        self.standby: dict[str, list[Task]] = {member: [] for member in self.members}
        self.loads = dict.fromkeys(self.members, 0)
        """tasks in either role"""
        self.present: dict[str, set[Task]] = {process: set() for process in self.threads}
        self.was_active: dict[Task, str] = {}
        self.was_standby: dict[Task, list[str]] = {}
        for member in self.members:
            has = candidates[member].has
            self.was_active.update(dict.fromkeys(each(has.active), member))
            for task in (*each(has.standby), *each(has.warmup)):
                self.was_standby.setdefault(task, []).append(member)

    def place_active(self, tasks: list[Task]) -> None:
        """Where it was, else where there is a copy of its state, else where there is least to do."""
        share, extra = divmod(len(tasks), len(self.members))
        quota = _Quota(share, extra)
        rest = [task for task in tasks if not self._keep_active(task, quota)]
        rest = [task for task in rest if not self._promote(task, quota)]
        processes = [(self._load(process), process) for process in self.threads]
        heapify(processes)
        for task in rest:
            while True:
                _, process = heappop(processes)
                free = [one for one in self.threads[process] if quota.has_room(len(self.active[one]))]
                if free:
                    break
            self._run(min(free, key=lambda one: (self.loads[one], one)), task, quota)
            heappush(processes, (self._load(process), process))

    def _keep_active(self, task: Task, quota: _Quota) -> bool:
        member = self.was_active.get(task)
        if member is None or not quota.has_room(len(self.active[member])):
            return False
        self._run(member, task, quota)
        return True

    def _promote(self, task: Task, quota: _Quota) -> bool:
        able = [one for one in self.was_standby.get(task, ()) if quota.has_room(len(self.active[one]))]
        if not able:
            return False
        self._run(min(able, key=lambda one: (self._load(self.process[one]), self.loads[one], one)), task, quota)
        return True

    def _run(self, member: str, task: Task, quota: _Quota) -> None:
        quota.take(len(self.active[member]))
        self.active[member].append(task)
        self._count(member, task)

    def place_standbys(self, tasks: list[Task], standbys: int) -> None:
        """Where there is state of the task already, as long as that member has not more to do than others; else where
        there is least to do. With too few processes there are fewer copies."""
        copies = min(standbys, len(self.threads) - 1)
        total = sum(self.loads.values()) + copies * len(tasks)
        most = -(-total // len(self.members))
        processes = [(self._load(process), process) for process in self.threads]
        heapify(processes)
        for _ in range(copies):
            for task in tasks:
                member = self._former(task, most) or self._idlest(task, processes)
                self.standby[member].append(task)
                self._count(member, task)
                heappush(processes, (self._load(self.process[member]), self.process[member]))

    def _former(self, task: Task, most: int) -> str | None:
        active = self.was_active.get(task)
        able = ([] if active is None else [active]) + self.was_standby.get(task, [])
        able = [one for one in able if task not in self.present[self.process[one]] and self.loads[one] < most]
        return able[0] if able else None

    def _idlest(self, task: Task, processes: list[tuple[float, str]]) -> str:
        """Entries that have been overtaken are dropped; those of processes that have the task are put back."""
        passed = []
        while True:
            entry = heappop(processes)
            if entry[0] != self._load(entry[1]):
                continue
            if task not in self.present[entry[1]]:
                break
            passed.append(entry)
        for one in passed:
            heappush(processes, one)
        return min(self.threads[entry[1]], key=lambda one: (self.loads[one], one))

    def _count(self, member: str, task: Task) -> None:
        self.loads[member] += 1
        self.present[self.process[member]].add(task)

    def _load(self, process: str) -> float:
        threads = self.threads[process]
        return sum(self.loads[one] for one in threads) / len(threads)


class _Quota:
    """Every member `share` tasks, `extra` of them one more."""

    def __init__(self, share: int, extra: int) -> None:
        self._share = share
        self._extra = extra

    def has_room(self, count: int) -> bool:
        return count < self._share or (count == self._share and self._extra > 0)

    def take(self, count: int) -> None:
        self._extra -= count == self._share
