"""Every planted bug by its name, and how one is put in and taken out."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from penstock.sim.options import draw
from penstock.sim.planted.bug import Bug
from penstock.sim.planted.cluster import CLUSTER_BUGS
from penstock.sim.planted.groups import CONSUMER_GROUP_BUGS, SHARE_GROUP_BUGS
from penstock.sim.planted.replication import REPLICATION_BUGS
from penstock.sim.planted.storage import STORAGE_BUGS
from penstock.sim.planted.transactions import TRANSACTION_BUGS
from penstock.sim.run import Report, Run

PLANTED: dict[str, Bug] = {
    bug.name: bug
    for bug in (
        *STORAGE_BUGS,
        *CLUSTER_BUGS,
        *REPLICATION_BUGS,
        *TRANSACTION_BUGS,
        *CONSUMER_GROUP_BUGS,
        *SHARE_GROUP_BUGS,
    )
}


def find(bug: Bug) -> tuple[int, Report] | None:
    """The first of its seeds that finds it, with what it said; None where none of them does."""
    for seed in range(bug.seed, bug.seed + bug.within):
        report = run_with(bug, seed)
        if {violation.invariant for violation in report.violations} & set(bug.fires):
            return seed, report
    return None


def run_with(bug: Bug, seed: int) -> Report:
    options = dataclasses.replace(draw(seed, bug.nodes, bug.events), **bug.options)
    with planted(bug.name):
        return Run(options).go()


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    """With the bug in; None: as it is."""
    if name is None:
        yield
        return
    before = [(patch.owner, patch.name, vars(patch.owner)[patch.name]) for patch in PLANTED[name].patches]
    try:
        for patch in PLANTED[name].patches:
            setattr(patch.owner, patch.name, patch.body)
        yield
    finally:
        for owner, attribute, original in before:
            setattr(owner, attribute, original)
