"""The judge of client histories shares nothing with what it judges."""

from __future__ import annotations

from tests.house.tracked import imported, tracked

CHECKER = "penstock.sim.check"


def test_the_history_checker_imports_nothing_of_ours():
    foreign = [
        (path, name)
        for path in tracked("src/penstock/sim/check/", ".py")
        for name in imported(path)
        if name.split(".")[0] == "penstock" and not f"{name}.".startswith(f"{CHECKER}.")
    ]
    assert foreign == []
