"""Three racks with 20 ms between them, one of them lost: nothing acked is lost, and readers read next door."""

from __future__ import annotations

import pytest

from penstock.broker import fetching
from penstock.cli.main import main
from penstock.core.replication.closest import NO_PREFERENCE
from penstock.sim import workload
from penstock.sim.run import simulate_racks
from penstock.wire.sessions import FetchLimits

EVENTS = 5_000


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_rack_is_lost_and_nothing_else(seed: int) -> None:
    report = simulate_racks(seed, events=EVENTS)
    assert report.violations == []
    assert report.injected["rack"] == 1
    assert report.acked > 0


@pytest.mark.parametrize("seed", range(4, 8))
def test_readers_read_from_their_own_rack(seed: int) -> None:
    """These runs kill no broker but those of the lost rack, so that nearly all that is read comes from next door."""
    report = simulate_racks(seed, events=EVENTS)
    assert report.near > 20 * report.far
    assert report.near > 100


def test_two_brokers_a_rack() -> None:
    report = simulate_racks(1, nodes=6, events=EVENTS)
    assert report.violations == []
    assert report.injected["rack"] == 1 and report.near > report.far


@pytest.mark.parametrize(("seed", "nodes"), [(9, 3), (36, 6)])
def test_who_reads_from_the_leader_with_good_reason_is_not_told(seed: int, nodes: int) -> None:
    """9: a new leader that the replica in the reader's rack has yet to fetch from. 36: records that a member held
    for three seconds, while its commit waited for a broker that had died."""
    report = simulate_racks(seed, nodes=nodes, events=20_000)
    assert report.violations == []
    assert report.far > 0


def test_a_follower_that_cut_its_log_hears_of_the_watermark_again() -> None:
    """The answer that tells where logs diverge names the watermark too, which a follower must not take then."""
    report = simulate_racks(20, nodes=6, events=20_000)
    assert report.violations == []


def test_a_leader_that_sends_nobody_next_door_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "preferred", lambda *_: NO_PREFERENCE)
    report = simulate_racks(6, events=EVENTS)
    assert [one.invariant for one in report.violations] == ["N1"]


def test_readers_that_do_not_say_where_they_are_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "FetchLimits", lambda max_wait_ms, rack: FetchLimits(max_wait_ms=max_wait_ms))
    report = simulate_racks(6, events=EVENTS)
    assert [one.invariant for one in report.violations] == ["N1"]


def test_the_command_tells_where_records_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--seed", "6", "--events", "3000", "--racks", "3", "--rack-latency", "20"]) == 0
    assert "in the reader's rack" in capsys.readouterr().out
    assert main(["sim", "--seed", "6", "--racks", "4"]) == 2
