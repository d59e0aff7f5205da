"""K4 and K5 as the simulator holds them: logs that have the same batch agree on all before it; who leads has what was
committed."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from penstock.sim.invariants.batches import Batch
from penstock.sim.invariants.metadata_lines import Lines


class Voter(NamedTuple):
    id: int
    host: str = "broker"


def write(lines: Lines, node_id: int, base: int, epoch: int, *, start: int = 0) -> None:
    voter: Any = Voter(node_id)
    lines.see(node_id, start, base)
    lines.grew(voter, Batch(base, base + 1, epoch, 1_000 * epoch + base, (-1, -1), -1, False, False))


def test_a_voter_that_is_given_a_snapshot_where_its_log_ends_has_what_the_snapshot_has():
    told: list[str] = []
    lines = Lines(lambda invariant, _: told.append(invariant))
    write(lines, 1, 0, epoch=6)  # of a leader that nobody followed
    write(lines, 2, 0, epoch=7)
    write(lines, 2, 1, epoch=7)
    write(lines, 1, 1, epoch=7, start=1)
    assert told == []


def test_a_voter_without_a_log_that_is_given_a_snapshot_is_read_from_there():
    lines = Lines(lambda invariant, text: None)
    assert lines.see(1, 0, 0) == 0
    assert lines.see(1, 41, 41) == 41


def test_a_voter_that_goes_on_from_something_else_is_told():
    told: list[str] = []
    lines = Lines(lambda invariant, _: told.append(invariant))
    write(lines, 1, 0, epoch=6)
    write(lines, 2, 0, epoch=7)
    write(lines, 2, 1, epoch=7)
    write(lines, 1, 1, epoch=7)
    assert told == ["K4"]


@pytest.mark.parametrize(("epoch", "expected"), [(6, ["K5"]), (8, [])])
def test_who_leads_has_what_leaders_before_it_have_committed_but_not_what_one_after_it_has(
    epoch: int, expected: list[str]
):
    """It may have been paused when it had just won, and be looked at later."""
    told: list[str] = []
    lines = Lines(lambda invariant, _: told.append(invariant))
    other: Any = Voter(1)
    write(lines, 1, 0, epoch=epoch)
    lines.commit(other, epoch, 1)
    lines.see(2, 0, 0)
    leader: Any = Voter(2)
    lines.led(leader, 7)
    assert told == expected
