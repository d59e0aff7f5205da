"""Members of share groups that come, report, fall silent and leave, while topics come and go, in any order."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.base.errors import ErrorCode, KafkaError
from tests.unit.core.groups.share_bench import CONTEXT, Bench, topic_id

MEMBERS = st.sampled_from(["a", "b", "c", "d"])
TOPICS = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, unique=True)


class Membership(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(x=1)
        self.epochs: dict[str, int] = {}
        """as each member knows its own"""
        self.group_epoch = -1

    def heartbeat(self, member: str, epoch: int, topics: list[str] | None) -> None:
        try:
            self.epochs[member] = self.bench.heartbeat(member, epoch, topics).member_epoch
        except KafkaError as error:
            assert error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
            self.epochs.pop(member, None)

    @rule(member=MEMBERS, topics=TOPICS)
    def join(self, member: str, topics: list[str]) -> None:
        self.heartbeat(member, 0, topics)

    @rule(member=MEMBERS, topics=st.none() | TOPICS)
    def report(self, member: str, topics: list[str] | None) -> None:
        if member in self.epochs:
            self.heartbeat(member, self.epochs[member], topics)

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        if self.epochs.pop(member, None) is not None:
            try:
                self.bench.heartbeat(member, -1)
            except KafkaError as error:
                assert error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)

    @rule(ms=st.sampled_from([100, 2_000, 20_000, 46_000]))
    def wait(self, ms: int) -> None:
        self.bench.pass_ms(ms)

    @rule()
    def begin(self) -> None:
        self.bench.begin()

    @rule()
    def fail_to_begin(self) -> None:
        while self.bench.asked:
            self.bench.ask(self.bench.shard.share_not_initialized, self.bench.asked.pop())

    @rule(x=st.integers(1, 3), y=st.integers(0, 3))
    def change_topics(self, x: int, y: int) -> None:
        """y may be deleted; topics do not shrink otherwise."""
        before = self.bench.metadata.image.topics
        counts = {"x": max(x, len(before["x"].partitions))}
        if y:
            counts["y"] = max(y, len(before["y"].partitions) if "y" in before else 0)
        self.bench.topics(**counts)
        if "y" in before and not y:
            self.bench.ask(self.bench.shard.forget_topics, [("y", topic_id("y"))])

    @rule()
    def settle(self) -> None:
        """Where all report often enough and the share coordinator works, every partition has somebody, and everybody
        who subscribes to one has one."""
        for _ in range(4):
            self.bench.pass_ms(2_000)
            for member in list(self.epochs):
                self.heartbeat(member, self.epochs[member], None)
            self.bench.begin()
        group = self.bench.groups.get("g")
        if group is None or set(group.members) != set(self.epochs):
            return
        topics = self.bench.metadata.image.topics
        wanted = {name for member in group.members.values() for name in member.topics if name in topics}
        everything = {(topics[name].id, index) for name in wanted for index in topics[name].partitions}
        assigned = self.bench.assigned()
        assert {place for places in assigned.values() for place in places} == everything
        for member_id, member in group.members.items():
            assert bool(assigned[member_id]) == any(name in topics for name in member.topics)

    @rule()
    def delete(self) -> None:
        [result] = self.bench.ask(self.bench.shard.delete_groups, ["g"], CONTEXT)
        group = self.bench.groups.get("g")
        assert (group is None) == (result.error_code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND))
        if group is None:
            self.group_epoch = -1

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.bench.groups.get("g")
        if group is not None:
            assert group.epoch >= self.group_epoch
            self.group_epoch = group.epoch

    @invariant()
    def the_log_tells_it_all(self) -> None:
        assert self.bench.again() == self.bench.compacted() == self.bench.groups


TestMembership = Membership.TestCase
TestMembership.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
