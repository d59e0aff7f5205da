"""Recording what clients did."""

import pytest

from penstock.sim.check.history import History, Poll, Send, from_lines, to_lines


def test_a_completion_says_what_was_invoked_and_what_became_of_it():
    history = History()
    history.invoke(1, "send", 10, [Send("t-0", "a")])
    done = history.complete(1, "ok", 20, [Send("t-0", "a", 7)])
    assert [(one.number, one.type, one.function) for one in history] == [(0, "invoke", "send"), (1, "ok", "send")]
    assert list(done.sends()) == [Send("t-0", "a", 7)]


def test_a_failed_operation_keeps_what_it_tried():
    history = History()
    history.invoke(1, "send", 10, [Send("t-0", "a")])
    assert list(history.complete(1, "fail", 20).sends()) == [Send("t-0", "a")]


def test_a_process_does_one_thing_at_a_time():
    history = History()
    history.invoke(1, "poll", 10, [Poll()])
    with pytest.raises(AssertionError, match="open"):
        history.invoke(1, "poll", 11, [Poll()])


def test_a_process_ends_with_an_unknown_outcome():
    history = History()
    history.invoke(1, "poll", 10, [Poll()])
    history.abandon(30)
    assert [one.type for one in history] == ["invoke", "info"]
    with pytest.raises(AssertionError, match="retired"):
        history.invoke(1, "poll", 31, [Poll()])


def test_a_history_that_was_kept_is_the_same():
    history = History()
    history.invoke("p", "subscribe", 1, keys=["t-0"])
    history.complete("p", "ok", 2)
    history.invoke("p", "txn", 3, [Send("t-0", 5), Poll()])
    history.complete("p", "ok", 4, [Send("t-0", 5, 0), Poll({"t-0": [(0, 5)]})], rebalanced=["t-0"])
    assert from_lines(to_lines(history)).operations == history.operations
