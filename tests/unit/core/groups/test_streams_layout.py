"""How many partitions and tasks a topology has with the topics there are, and what can be wrong with those."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.limits import STREAMS_TASKS_MAX
from penstock.core.groups.streams.layout import Fault, Layout, Status, lay_out
from penstock.core.groups.streams.topology import InternalTopic, Subtopology, Topology


def laid(*subtopologies: Subtopology, **topics: int) -> Layout:
    return lay_out(Topology(0, subtopologies), lambda name: topics.get(name, 0))


def repartition(name: str, partitions: int = 0) -> InternalTopic:
    return InternalTopic(name, partitions)


def invalid(*subtopologies: Subtopology, **topics: int) -> str | None:
    with pytest.raises(KafkaError) as caught:
        laid(*subtopologies, **topics)
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
    return caught.value.message


SPLIT = Subtopology("0", ("lines",), repartition_sinks=("words",))
COUNT = Subtopology("1", (), (repartition("words"),), changelogs=(InternalTopic("counts"),))


def test_internal_topics_have_as_many_partitions_as_what_flows_into_them():
    layout = laid(SPLIT, COUNT, lines=3)
    assert [(topic.name, topic.partitions) for topic in layout.missing] == [("counts", 3), ("words", 3)]
    assert layout.fault == Fault(Status.MISSING_INTERNAL_TOPICS, "Internal topics are missing: counts, words")


def test_once_they_are_there_it_is_ready():
    assert laid(SPLIT, COUNT, lines=3, words=3, counts=3) == Layout(None, {"0": 3, "1": 3}, {"words": 3, "counts": 3})


def test_a_fixed_number_holds_downstream_of_it():
    count = Subtopology("1", (), (repartition("words", 5),), changelogs=(InternalTopic("counts"),))
    layout = laid(SPLIT, count, lines=3)
    assert layout.counts == {"words": 5, "counts": 5}
    assert layout.tasks == {"0": 3, "1": 5}


def test_numbers_are_found_through_several_repartitions_whatever_their_order():
    last = Subtopology("0", (), (repartition("second"),))
    middle = Subtopology("1", (), (repartition("first"),), repartition_sinks=("second",))
    head = Subtopology("2", ("a", "b"), repartition_sinks=("first",))
    assert laid(last, middle, head, a=2, b=4).counts == {"first": 4, "second": 4}


def test_missing_source_topics_come_first_and_a_long_list_is_cut():
    assert laid(SPLIT, COUNT).fault == Fault(Status.MISSING_SOURCE_TOPICS, "Source topics lines are missing.")
    many = Subtopology("0", tuple(f"t{at}" for at in range(8)))
    assert laid(many, t3=1).fault == Fault(
        Status.MISSING_SOURCE_TOPICS, "Source topics t0, t1, t2, t4, t5 and 2 additional topics are missing."
    )


def test_what_is_joined_must_have_equally_many_partitions():
    join = Subtopology("0", ("a", "b"), copartitioned=(("a", "b"),))
    assert laid(join, a=2, b=2).is_ready
    assert laid(join, a=2, b=3).fault == Fault(
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Following topics do not have the same number of partitions: [{a=2, b=3}]",
    )


def test_a_repartition_topic_follows_what_it_is_joined_with():
    head = Subtopology("0", ("big",), repartition_sinks=("again",))
    join = Subtopology("1", ("small",), (repartition("again"),), copartitioned=(("again", "small"),))
    assert laid(head, join, big=8, small=2).counts == {"again": 2}


def test_a_fixed_repartition_topic_that_does_not_fit_is_told():
    head = Subtopology("0", ("big",), repartition_sinks=("again",))
    join = Subtopology("1", ("small",), (repartition("again", 3),), copartitioned=(("again", "small"),))
    assert laid(head, join, big=8, small=2).fault == Fault(
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Number of partitions [3] of repartition topic [again] doesn't match number of partitions [2] of the"
        " source topic.",
    )


def test_repartition_topics_that_are_joined_have_the_most_that_one_needs_or_what_one_says():
    head = Subtopology("0", ("a",), repartition_sinks=("x",))
    other = Subtopology("1", ("b",), repartition_sinks=("y",))
    join = Subtopology("2", (), (repartition("x"), repartition("y")), copartitioned=(("x", "y"),))
    assert laid(head, other, join, a=2, b=6).counts == {"x": 6, "y": 6}
    fixed = Subtopology("2", (), (repartition("x", 3), repartition("y")), copartitioned=(("x", "y"),))
    assert laid(head, other, fixed, a=2, b=6).counts == {"x": 3, "y": 3}


def test_an_internal_topic_of_another_size_is_told():
    assert laid(SPLIT, COUNT, lines=3, words=2).fault == Fault(
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic words has different number of partitions: expected 3, found 2",
    )


def test_a_table_that_is_kept_in_its_source_needs_no_changelog_of_its_own():
    table = Subtopology("0", ("table",), changelogs=(InternalTopic("table"),))
    assert laid(table, table=4) == Layout(None, {"0": 4})


def test_a_repartition_topic_that_nobody_writes_to_or_only_itself_can_never_work():
    assert "never used as a sink" in (invalid(COUNT) or "")
    loop = Subtopology("0", (), (repartition("x"),), repartition_sinks=("x",))
    assert "loops" in (invalid(loop) or "")


def test_more_tasks_than_a_group_may_have_are_a_fault_of_the_topics():
    readers = tuple(Subtopology(str(at), ("t",)) for at in range(3))
    assert laid(*readers, t=STREAMS_TASKS_MAX // 3).is_ready
    fault = laid(*readers, t=STREAMS_TASKS_MAX // 3 + 1).fault
    assert fault is not None
    assert fault.status is Status.INCORRECTLY_PARTITIONED_TOPICS
    assert fault.detail.startswith("The partitions of its topics make 100002 tasks, more than the 100000")


def test_what_does_not_fit_together_is_told_in_a_few_words():
    together = tuple(f"topic-{at:04}" for at in range(1_000))
    one = Subtopology("0", together, copartitioned=(together,))
    fault = lay_out(Topology(0, (one,)), lambda name: 1 + (name == "topic-0007")).fault
    assert fault is not None
    assert fault.detail.endswith("topic-0004=1 and 995 additional topics}]")
