"""Of the whole suite: under PENSTOCK_REQUIRE_ALL=1 what is skipped fails, and no example of a property test has a
deadline, for a machine that is busy is not a bug."""

from hypothesis import HealthCheck, settings

from tests.components import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")
