"""Who runs which task: evenly, with copies elsewhere, and with as little moved as can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.groups.streams.assignor import Candidate, assign
from penstock.core.groups.streams.tasks import NO_TASKS, Task, Tasks, each

Threads = dict[str, str]
"""member -> process"""


def assigned(tasks: dict[str, int], threads: Threads, before: dict[str, Tasks], standbys: int) -> dict[str, Tasks]:
    stateful = [name for name in tasks if name.startswith("s")]
    candidates = {member: Candidate(process, before.get(member, NO_TASKS)) for member, process in threads.items()}
    return assign(tasks, stateful, candidates, standbys)


def running(found: dict[str, Tasks]) -> dict[Task, str]:
    return {task: member for member, tasks in found.items() for task in each(tasks.active)}


def places(found: dict[str, Tasks], threads: Threads) -> list[tuple[Task, str]]:
    return [(task, threads[member]) for member, tasks in found.items() for role in tasks for task in each(role)]


TASKS = st.dictionaries(st.sampled_from(["s1", "s2", "plain"]), st.integers(1, 7), min_size=1)
THREADS = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["p", "q", "r"]), min_size=1)


@given(TASKS, THREADS, THREADS, st.integers(0, 2))
def test_all_run_once_evenly_and_no_process_has_a_task_twice(
    tasks: dict[str, int], first: Threads, second: Threads, standbys: int
) -> None:
    before: dict[str, Tasks] = {}
    for threads in (first, second):
        before = assigned(tasks, threads, before, standbys)
        runners = running(before)
        assert sorted(runners) == sorted((name, at) for name, count in tasks.items() for at in range(count))
        loads = [sum(1 for _ in each(one.active)) for one in before.values()]
        assert max(loads) - min(loads) <= 1
        everywhere = places(before, threads)
        assert len(everywhere) == len(set(everywhere))
        copies = min(standbys, len(set(threads.values())) - 1)
        expected = sum(count * copies for name, count in tasks.items() if name.startswith("s"))
        assert sum(1 for one in before.values() for _ in each(one.standby)) == expected
        assert before.keys() == threads.keys()


@given(TASKS, THREADS, st.integers(0, 2))
def test_where_nothing_changes_nothing_moves(tasks: dict[str, int], threads: Threads, standbys: int) -> None:
    once = assigned(tasks, threads, {}, standbys)
    again = assigned(tasks, threads, once, standbys)
    assert {member: one.active for member, one in again.items()} == {m: one.active for m, one in once.items()}


def test_who_comes_gets_its_share_and_the_rest_stays():
    threads = {"a": "p", "b": "q"}
    first = assigned({"s": 6}, threads, {}, 0)
    second = assigned({"s": 6}, {**threads, "c": "r"}, first, 0)
    moved = [task for task, member in running(second).items() if running(first)[task] != member]
    assert len(moved) == 2
    assert {member: len(one.active["s"]) for member, one in second.items()} == {"a": 2, "b": 2, "c": 2}


def test_a_task_goes_where_its_copy_is():
    first = assigned({"s": 3}, {"a": "p", "b": "q", "c": "r"}, {}, 1)
    copies = {task: member for member, one in first.items() for task in each(one.standby)}
    lost = [task for task, member in running(first).items() if member == "a"]
    second = running(assigned({"s": 3}, {"b": "q", "c": "r"}, first, 1))
    assert {task: second[task] for task in lost} == {task: copies[task] for task in lost}


def test_a_process_with_more_threads_gets_more():
    found = assigned({"plain": 6}, {"a1": "p", "a2": "p", "b": "q"}, {}, 0)
    assert {member: len(one.active["plain"]) for member, one in found.items()} == {"a1": 2, "a2": 2, "b": 2}


def test_with_one_process_there_are_no_copies_and_without_members_nothing():
    assert all(not one.standby for one in assigned({"s": 3}, {"a": "p", "b": "p"}, {}, 2).values())
    assert assigned({"s": 3}, {}, {}, 1) == {}
