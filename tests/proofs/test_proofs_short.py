"""The proofs in their short form: the same code that `make prove` runs at full size."""

from __future__ import annotations

from proofs import crash, group_state, power_loss, steady_load
from tests.components import require_component
from tests.conformance.apache import find_jars


def test_killed_twice_and_nothing_acked_is_lost_doubled_or_out_of_order():
    figures = crash.run(records=200_000, kills=2)
    assert figures["records"] == figures["acked"] == 200_000


def test_power_lost_five_times_and_nothing_acked_is_lost():
    figures = power_loss.run(records=100_000, losses=5)
    assert figures["records"] == 100_000


def test_steady_load_for_a_moment():
    figures = steady_load.run(seconds=8, sample_s=1)
    assert figures["sent"] > 0


def test_committed_offsets_of_many_groups_are_there_after_a_kill():
    require_component(find_jars() is not None, "Apache Kafka", "python tools/fetch_kafka.py")
    figures = group_state.run(groups=100, offsets=10_000, idle_s=1, brokers=["penstock"])
    assert figures["penstock"]["seconds_until_all_are_loaded"] < 10
