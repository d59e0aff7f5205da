"""Windows, as Kafka Streams defines them. Times are milliseconds; a timedelta or a text such as "5 minutes" will do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

Duration = int | float | str | timedelta
"""Milliseconds as a number, a timedelta, or a text: "200 ms", "30 seconds", "5 minutes", "1 hour", "2 days"."""

FOR_EVER = 2**63 - 1
"""The end of a window that never ends."""

_UNITS = {"ms": 1, "millisecond": 1, "s": 1000, "second": 1000, "m": 60_000, "min": 60_000, "minute": 60_000}
_UNITS |= {"h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "week": 604_800_000}
_UNITS |= {f"{name}s": unit for name, unit in _UNITS.items() if len(name) > 2}
"""Words have a plural; "ms" is not more than one minute."""
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def milliseconds(duration: Duration, name: str = "duration") -> int:
    if isinstance(duration, timedelta):
        return round(duration.total_seconds() * 1000)
    if isinstance(duration, int | float):
        return int(duration)
    found = _TEXT.fullmatch(duration)
    unit = found and _UNITS.get(found[2].lower())
    if not found or not unit:
        raise ValueError(f'{name}: "{duration}" is no duration; write for example "500 ms", "30 seconds", "5 minutes"')
    return round(float(found[1]) * unit)


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of one size: tumbling, or hopping where `advance` is smaller. A row older than the grace is dropped."""

    size_ms: int
    advance_ms: int
    grace_ms: int

    @staticmethod
    def of(size: Duration, *, advance: Duration | None = None, grace: Duration = 0) -> TimeWindows:
        size_ms = milliseconds(size, "size")
        advance_ms = size_ms if advance is None else milliseconds(advance, "advance")
        if size_ms <= 0 or not 0 < advance_ms <= size_ms:
            raise ValueError(
                f"a window of {size_ms} ms that advances by {advance_ms} ms: both are positive, the advance no larger"
            )
        return TimeWindows(size_ms, advance_ms, _grace(grace))

    def starts(self, timestamp: int) -> range:
        """Of the windows that hold `timestamp`, the earliest first."""
        first = max(0, timestamp - self.size_ms + self.advance_ms) // self.advance_ms * self.advance_ms
        return range(first, timestamp + 1, self.advance_ms)

    def end(self, start: int) -> int:
        return start + self.size_ms


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window from `start` on, for ever."""

    start_ms: int = 0


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """A window for every set of rows no further apart than the difference; both ends belong to it."""

    difference_ms: int
    grace_ms: int

    @staticmethod
    def of(difference: Duration, *, grace: Duration = 0) -> SlidingWindows:
        difference_ms = milliseconds(difference, "difference")
        if difference_ms < 0:
            raise ValueError(f"a difference of {difference_ms} ms: it is not negative")
        return SlidingWindows(difference_ms, _grace(grace))


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Rows of a key that follow each other within the gap are one session."""

    gap_ms: int
    grace_ms: int

    @staticmethod
    def of(gap: Duration, *, grace: Duration = 0) -> SessionWindows:
        gap_ms = milliseconds(gap, "gap")
        if gap_ms <= 0:
            raise ValueError(f"a gap of {gap_ms} ms: it is positive")
        return SessionWindows(gap_ms, _grace(grace))


@dataclass(frozen=True, slots=True)
class JoinWindows:
    """Rows join where right is no more than `before` earlier and no more than `after` later than left."""

    before_ms: int
    after_ms: int
    grace_ms: int

    @staticmethod
    def of(
        difference: Duration, *, before: Duration | None = None, after: Duration | None = None, grace: Duration = 0
    ) -> JoinWindows:
        both = milliseconds(difference, "difference")
        before_ms = both if before is None else milliseconds(before, "before")
        after_ms = both if after is None else milliseconds(after, "after")
        if before_ms + after_ms < 0:
            raise ValueError(f"{before_ms} ms before to {after_ms} ms after: such a window is empty")
        return JoinWindows(before_ms, after_ms, _grace(grace))


Windows = TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows


def _grace(grace: Duration) -> int:
    grace_ms = milliseconds(grace, "grace")
    if grace_ms < 0:
        raise ValueError(f"a grace of {grace_ms} ms: it is not negative")
    return grace_ms
