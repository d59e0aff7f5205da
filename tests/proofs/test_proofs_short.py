"""The proofs in their short form: the same code that `make prove` runs at full size."""

from __future__ import annotations

from proofs import crash, power_loss, steady_load


def test_killed_twice_and_nothing_acked_is_lost_doubled_or_out_of_order():
    figures = crash.run(records=200_000, kills=2)
    assert figures["records"] == figures["acked"] == 200_000


def test_power_lost_five_times_and_nothing_acked_is_lost():
    figures = power_loss.run(records=100_000, losses=5)
    assert figures["records"] == 100_000


def test_steady_load_for_a_moment():
    figures = steady_load.run(seconds=8, sample_s=1)
    assert figures["sent"] > 0
