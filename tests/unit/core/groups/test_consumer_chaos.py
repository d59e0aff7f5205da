"""Whatever members, topics and time do: no partition is with two consumers, and in the end all of them are with one."""

from __future__ import annotations

from dataclasses import replace

from consumer_bench import GROUP, Bench, Consumer
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.base.errors import ErrorCode, KafkaError
from penstock.core.groups.config import GroupConfig

NAMES = ["a", "b", "c", "d", "e"]
STATIC = ("d", "e")
TOPICS = st.sampled_from([["x"], ["x", "y"], ["y"], []])
REGEXES = st.sampled_from(["x|y", ".*", "z.*", ""])
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


class Groups(RuleBasedStateMachine):
    """Consumers follow the protocol: what they own they were told, and have not said to have given up."""

    def __init__(self) -> None:
        super().__init__()
        config = GroupConfig()
        self.bench = Bench(replace(config, consumer=replace(config.consumer, max_size=4)), x=3, y=2)
        self.consumers: dict[str, Consumer] = {}
        self.generations = 0

    @rule(name=st.sampled_from(NAMES), topics=TOPICS)
    def join(self, name: str, topics: list[str]) -> None:
        self._join(name, topics, {})

    @rule(name=st.sampled_from(NAMES), regex=REGEXES)
    def join_by_expression(self, name: str, regex: str) -> None:
        self._join(name, [], {"subscribed_topic_regex": regex})

    def _join(self, name: str, topics: list[str], fields: dict[str, str]) -> None:
        self.generations += 1
        member_id = f"{name}{self.generations}"
        if name in self.consumers:
            if name not in STATIC:
                return
            member_id = self.consumers[name].member_id
        static = {"instance_id": name} if name in STATIC else {}
        consumer = Consumer(self.bench, member_id, *topics, **static, **fields)
        try:
            self.consumers[name] = consumer.join()
        except KafkaError as error:
            assert error.code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNRELEASED_INSTANCE_ID)

    @rule(name=st.sampled_from(NAMES))
    def beat(self, name: str) -> None:
        if consumer := self.consumers.get(name):
            self._safely(name, consumer.beat)

    @rule(name=st.sampled_from(NAMES), topics=TOPICS)
    def subscribe(self, name: str, topics: list[str]) -> None:
        if consumer := self.consumers.get(name):
            self._safely(name, lambda: consumer.beat(subscribed_topic_names=topics, subscribed_topic_regex=""))

    @rule(name=st.sampled_from(NAMES))
    def lose_the_answer(self, name: str) -> None:
        """The coordinator hears a heartbeat and the client does not hear the answer."""
        if consumer := self.consumers.get(name):
            kept = consumer.epoch, set(consumer.told), set(consumer.owned)
            self._safely(name, consumer.beat)
            if name in self.consumers:
                consumer.epoch, consumer.told, consumer.owned = kept
                consumer.is_unsure = True

    @rule(name=st.sampled_from(NAMES))
    def revoke(self, name: str) -> None:
        if consumer := self.consumers.get(name):
            consumer.owned &= consumer.told

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        if consumer := self.consumers.pop(name, None):
            self._safely(name, consumer.leave)

    @rule(name=st.sampled_from(STATIC))
    def restart(self, name: str) -> None:
        """A static member goes for a while, and is back under another id."""
        if consumer := self.consumers.pop(name, None):
            try:
                consumer.leave(-2)
            except KafkaError as error:
                assert error.code in FENCED
            self.join(name, consumer.topics)

    @rule(name=st.sampled_from(NAMES))
    def crash(self, name: str) -> None:
        self.consumers.pop(name, None)

    @rule(ms=st.sampled_from([10, 1_000, 20_000, 46_000]))
    def later(self, ms: int) -> None:
        self.bench.later(ms)

    @rule(x=st.integers(0, 4), y=st.integers(0, 3), z=st.integers(0, 2))
    def topics(self, x: int, y: int, z: int) -> None:
        self.bench.topics(**{name: count for name, count in (("x", x), ("y", y), ("z1", z)) if count})

    @rule()
    def fail_over(self) -> None:
        self.bench.fail_over()

    @rule()
    def come_to_rest(self) -> None:
        """Everybody reports until nothing changes: then each partition that is wanted has one owner, and knows it."""
        self.bench.later(2_000)
        for _ in range(6):
            for name, consumer in list(self.consumers.items()):
                consumer.owned &= consumer.told
                self._safely(name, consumer.beat)
            self.bench.later(3_000)
        group = self.bench.shard.state.store.consumers.get(GROUP)
        if group is None or len(group.members) != len(self.consumers):
            return  # somebody who crashed is still expected
        owned = [partition for consumer in self.consumers.values() for partition in consumer.owned]
        image = self.bench.metadata.image
        wanted = [image.topics[name] for name in group.subscribed_topics() if name in image.topics]
        assert sorted(owned) == sorted((topic.id, at) for topic in wanted for at in topic.partitions)
        assert group.state.value == ("Stable" if self.consumers else "Empty")

    def _safely(self, name: str, call: object) -> None:
        try:
            call()  # type: ignore[operator]  # a function
        except KafkaError as error:
            assert error.code in FENCED, error
            self.consumers.pop(name, None)

    @invariant()
    def nobody_owns_what_another_owns(self) -> None:
        """Among those that the coordinator counts as members. Whoever it has removed will be told."""
        group = self.bench.shard.state.store.consumers.get(GROUP)
        seen: dict[tuple[bytes, int], str] = {}
        for name, consumer in self.consumers.items():
            if group is None or consumer.member_id not in group.members:
                continue
            for partition in consumer.owned:
                assert partition not in seen, f"{partition} is with {seen.get(partition)} and {name}"
                seen[partition] = name

    def teardown(self) -> None:
        """A log that is loaded says the same as the one that was lived through."""
        stored = self.bench.shard.state.store.consumers
        assert self.bench.reloaded().shard.state.store.consumers == stored


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
