"""Which replicas are throttled, and when their rate is used up."""

from __future__ import annotations

from penstock.core.replication.quota import ReplicationQuota


def quota(limit: int = 1_000) -> ReplicationQuota:
    made = ReplicationQuota(windows=11, window_ms=1_000)
    made.limit = limit
    return made


def test_replicas_of_this_broker_are_throttled_as_the_topic_says():
    one = quota()
    assert not one.throttled
    one.throttle("t", "0:1, 2:1,3:2", 1)
    assert one.throttled and [index for index in range(5) if one.is_throttled("t", index)] == [0, 2]
    assert not one.is_throttled("another", 0)
    one.throttle("t", "*", 1)
    assert one.is_throttled("t", 77)
    one.throttle("t", "", 1)
    assert not one.throttled and not one.is_throttled("t", 0)


def test_a_rate_is_used_up_until_time_has_passed():
    one = quota()
    assert not one.is_exceeded(0)
    one.record(1_000, 0)
    assert not one.is_exceeded(0), "as much as a window may carry"
    one.record(2_000, 0)
    assert one.is_exceeded(2_999)
    assert not one.is_exceeded(3_000)


def test_the_rate_is_taken_over_the_last_windows_alone():
    one = quota()
    one.record(1_000_000, 0)
    assert one.is_exceeded(10_999)
    assert not one.is_exceeded(11_000), "the window in which it was sent is forgotten"


def test_a_steady_flow_at_the_limit_is_not_held_back():
    one = quota()
    for tenth in range(600):
        if not one.is_exceeded(tenth * 100):
            one.record(100, tenth * 100)
    assert not one.is_exceeded(60_000)


def test_without_a_limit_nothing_is_exceeded():
    one = ReplicationQuota(windows=11, window_ms=1_000)
    one.record(1 << 50, 0)
    assert not one.is_exceeded(1)
