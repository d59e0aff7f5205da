"""Threads of an application that come, report, hold on, fall silent and leave, while topics change, in any order."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.core.groups.streams.group import StreamsGroupState
from tests.unit.core.groups.streams_bench import GROUP, WORDS, Bench, Thread

THREADS = st.sampled_from(["a", "b", "c", "d"])
PROCESSES = {"a": "p", "b": "p", "c": "q", "d": "r"}


class Membership(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(lines=3)
        self.threads = {name: Thread(self.bench, name, process=process) for name, process in PROCESSES.items()}
        self.epochs = (0, 0)

    @rule(name=THREADS, holds_on=st.booleans())
    def beat(self, name: str, holds_on: bool) -> None:
        self.threads[name].beat(holds_on=holds_on)

    @rule()
    def create_missing(self) -> None:
        self.bench.create_missing()

    @rule(name=THREADS)
    def leave(self, name: str) -> None:
        group = self.bench.streams.get(GROUP)
        if group is not None and name in group.members:
            self.threads[name].leave()

    @rule(name=THREADS)
    def forget(self, name: str) -> None:
        """It dies, and comes back without a memory."""
        self.threads[name].epoch = 0

    @rule(ms=st.sampled_from([500, 3_000, 20_000, 46_000]))
    def wait(self, ms: int) -> None:
        self.bench.pass_ms(ms)

    @rule(standbys=st.integers(0, 2))
    def configure(self, standbys: int) -> None:
        self.bench.configure(streams_num_standby_replicas=str(standbys))

    @rule()
    def lose_a_topic(self) -> None:
        self.bench.topics(lines=3, **{WORDS: 3})

    @rule()
    def settle(self) -> None:
        """Where all report often enough and topics are made, every task runs, and as told to the members."""
        threads = [one for one in self.threads.values() if one.epoch]
        if not threads:
            return
        self.bench.run(*threads, ms=60_000)
        group = self.bench.group
        assert group.state is StreamsGroupState.STABLE
        active = sorted(task for one in threads for task in one.active)
        assert active == [(name, number) for name in ("0", "1") for number in range(3)]
        assert set(group.members) == {one.name for one in threads}

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.bench.streams.get(GROUP)
        if group is not None:
            now = group.epoch, group.target_epoch
            assert all(after >= before for before, after in zip(self.epochs, now, strict=True))
            self.epochs = now

    @invariant()
    def the_log_tells_it_all(self) -> None:
        assert self.bench.stored_again() == [self.bench.streams, self.bench.streams]

    @invariant()
    def nobody_runs_what_another_runs(self) -> None:
        """As the threads themselves see it: one that was fenced does not know yet."""
        group = self.bench.streams.get(GROUP)
        known = [one for one in self.threads.values() if group is not None and one.name in group.members and one.epoch]
        current = [one for one in known if group is not None and group.members[one.name].epoch == one.epoch]
        tasks = [task for one in current for task in one.active]
        assert len(tasks) == len(set(tasks))


TestMembership = Membership.TestCase
TestMembership.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
