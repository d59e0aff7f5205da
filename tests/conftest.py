"""Property tests of the whole suite: no example has a deadline, for a machine that is busy is not a bug."""

from hypothesis import HealthCheck, settings

settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")
