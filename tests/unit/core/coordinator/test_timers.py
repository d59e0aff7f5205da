"""Timers as data: order, moving, cancelling; checked against a plain list as the model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.coordinator.timers import Timers


def fired(timers: Timers, now_ms: int) -> list[object]:
    return [timer.event for timer in timers.due(now_ms)]


def test_fires_by_deadline_and_equals_in_the_order_they_were_armed() -> None:
    timers = Timers()
    timers.schedule("late", 30, "late")
    timers.schedule("b", 10, "b")
    timers.schedule("a", 10, "a")
    assert fired(timers, 9) == []
    assert fired(timers, 30) == ["b", "a", "late"]


def test_a_moved_timer_fires_once_at_its_new_deadline() -> None:
    timers = Timers()
    timers.schedule("session", 10, "first")
    timers.schedule("session", 25, "second")
    assert timers.next_deadline_ms() == 25
    assert fired(timers, 24) == []
    assert fired(timers, 25) == ["second"]
    assert fired(timers, 1_000) == []


def test_a_timer_moved_closer_fires_earlier() -> None:
    timers = Timers()
    timers.schedule("session", 100, "first")
    timers.schedule("session", 5, "second")
    assert fired(timers, 5) == ["second"]
    assert timers.next_deadline_ms() is None


def test_what_a_timer_leads_to_may_cancel_the_next_one() -> None:
    timers = Timers()
    timers.schedule("a", 1, "a")
    timers.schedule("b", 1, "b")
    seen = []
    for timer in timers.due(1):
        seen.append(timer.event)
        timers.cancel("b")
    assert seen == ["a"]


def test_a_timer_armed_by_a_due_one_waits_for_the_next_call() -> None:
    timers = Timers()
    timers.schedule("a", 1, "a")
    for timer in timers.due(1):
        timers.schedule(timer.key, 1, "again")
    assert timers.next_deadline_ms() == 1
    assert fired(timers, 1) == ["again"]


def test_ten_thousand_heartbeats_leave_no_trail() -> None:
    timers = Timers()
    timers.schedule("other", 10**9, None)
    for deadline_ms in range(10_000):
        timers.schedule("session", deadline_ms, None)
    assert len(timers._heap) < 100


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("arm"), st.integers(0, 5), st.integers(0, 50)),
        st.tuples(st.just("cancel"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("due"), st.just(0), st.integers(0, 50)),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_agrees_with_a_plain_list(actions: list[tuple[str, int, int]]) -> None:
    timers = Timers()
    model: dict[int, tuple[int, int]] = {}
    for step, (action, key, when) in enumerate(actions):
        if action == "arm":
            timers.schedule(key, when, key)
            model[key] = (when, step)
        elif action == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            expected = sorted((k for k, (deadline, _) in model.items() if deadline <= when), key=lambda k: model[k])
            assert fired(timers, when) == expected
            for k in expected:
                del model[k]
        timers.check()
        assert timers.next_deadline_ms() == min((deadline for deadline, _ in model.values()), default=None)
