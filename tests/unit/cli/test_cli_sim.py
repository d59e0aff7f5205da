"""The arguments of `penstock sim`."""

import pytest

from penstock.cli.main import main
from penstock.cli.sim import HELP, RACK_LATENCY_MS
from penstock.sim.planted.registry import PLANTED
from penstock.sim.run import simulate_seed


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--events", "0"], "--events 0"),
        (["--seed", "1", "--nodes", "0"], "--nodes 0"),
        (["--seed", "1", "--racks", "0"], "--racks 0"),
        (["--seed", "1", "--racks", "4"], "--racks 4"),
        (["--seed", "1", "--rack-latency", "5"], "--rack-latency"),
        (["--seed", "1", "--racks", "2", "--rack-latency", "-1"], "--rack-latency -1"),
        (["--plant", "gremlin"], "gremlin"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments, named, capsys):
    assert main(["sim", *arguments]) == 2
    assert named in capsys.readouterr().err


def test_a_planted_bug_is_found_without_a_seed(capsys):
    [example] = [line.split("#")[0].split()[1:] for line in HELP.splitlines() if "--plant " in line]
    assert main(example) == 1
    assert f"seed {PLANTED['fsync-retry'].seed}: violated" in capsys.readouterr().out


def test_the_list_of_bugs_names_their_seeds(capsys):
    assert main(["sim", "--list-planted"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["name", "seed"]
    assert [row.split()[:2] for row in rows] == [[bug.name, str(bug.seed)] for bug in PLANTED.values()]


@pytest.mark.parametrize(("given", "latency_ms"), [([], RACK_LATENCY_MS), (["--rack-latency", "0"], 0)])
def test_racks_are_as_far_apart_as_asked_for(given, latency_ms, monkeypatch):
    taken = []

    def simulate(seed, nodes, events, *, racks, latency_ms):
        taken.append((racks, latency_ms))
        return simulate_seed(seed, nodes, events)

    monkeypatch.setattr("penstock.sim.run.simulate_racks", simulate)
    main(["sim", "--seed", "1", "--events", "1", "--racks", "3", *given])
    assert taken == [(3, latency_ms)]
