"""Every operator on plain rows: exactly what comes out, in order."""

from __future__ import annotations

from typing import Any

import pytest
from operator_cases import CASES, Case

from penstock.pipeline import Driver, Pipeline


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_on_plain_rows(case: Case) -> None:
    pipeline = Pipeline(case.name)
    case.build(pipeline)
    driver = Driver(pipeline)
    for topic, key, value, timestamp in case.inputs:
        driver.send(topic, key, value.encode() if isinstance(value, str) else value, timestamp=timestamp)
    found: dict[str, list[Any]] = {topic: [tuple(row) for row in driver.rows(topic)] for topic in case.rows}
    assert found == case.rows
