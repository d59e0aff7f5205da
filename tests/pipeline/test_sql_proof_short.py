"""The proof of SQL in its short form: the same code that `make prove` runs at full size."""

from __future__ import annotations

from typing import Any

import pytest

from proofs import sql_engines

pytestmark = pytest.mark.timeout(300)
"""The first query of a session waits for Spark's workers, long on a busy machine."""


def test_the_answers_of_both_engines_are_equal(spark: Any, monkeypatch: Any):
    monkeypatch.setattr(sql_engines, "TIMED_RUNS", 1)
    figures = sql_engines.run(records=50_000, spark=spark, fresh=False)
    assert figures["queries"].keys() == sql_engines.QUERIES.keys()  # type: ignore[attr-defined]  # figures are of any kind
