"""The proof of the exactly-once sink, short: a stateful query is killed a few times, and nothing is lost or double."""

from __future__ import annotations

import random

import pytest

from penstock.pipeline.java import JavaMissing, find_java
from proofs.exactly_once_sink import Strike, run, under_fire
from tests.components import require_component

SHORT = [
    Strike("worker", "marker in the transaction"),
    Strike("worker", "committed"),
    Strike("driver", "rows in the log"),
    Strike("driver", "committed"),
    Strike("worker", "skipped", in_replay=True),
    Strike("broker"),
]


@pytest.fixture(autouse=True)
def components() -> None:
    try:
        find_java()
    except JavaMissing as missing:
        require_component(False, "Java", str(missing))


@pytest.mark.timeout(600)
def test_a_query_that_is_killed_writes_every_event_once():
    figures = under_fire(SHORT, "stream", random.Random(1))
    assert (figures["kills"], figures["lost"], figures["doubled"]) == (5, 0, 0)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_proof_notices_a_sink_that_forgets_what_it_wrote(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_PLANTED_BUG", "rewrite")
    with pytest.raises(AssertionError, match="came out more than once"):
        under_fire([Strike("driver", "committed")], "stream", random.Random(1))


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_query_that_is_killed_at_every_step_writes_every_event_once():
    assert run()
