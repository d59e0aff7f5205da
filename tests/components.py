"""What tests need besides Python: a test without it is skipped by its name, and under PENSTOCK_REQUIRE_ALL=1, where
nothing may be left out, it fails, whichever way it was skipped."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

R = TypeVar("R", pytest.TestReport, pytest.CollectReport)


def require_component(present: bool, name: str, how: str) -> None:
    if not present:
        pytest.skip(f"{name} is missing: {how}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return strict((yield))


def strict(report: R) -> R:
    if report.outcome == "skipped" and os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
        told = report.longrepr
        report.outcome = "failed"
        report.longrepr = (
            f"{told[2] if isinstance(told, tuple) else told}; PENSTOCK_REQUIRE_ALL=1 lets nothing be skipped"
        )
    return report
