"""Log aggregation with alerts: the lines of all services come together, and a service whose errors pile up is reported.

Every minute, for each service: how many lines, how many errors. More than one in ten, and not just a few: an alert,
once the minute is over.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.pipeline import Pipeline, TimeWindows, Windowed


@dataclass
class Line:
    service: str
    level: str
    message: str


@dataclass
class Minute:
    lines: int = 0
    errors: int = 0


@dataclass
class Alert:
    service: str
    minute: int
    errors: int
    lines: int


def counted(minute: Minute, line: Line) -> Minute:
    return Minute(minute.lines + 1, minute.errors + (line.level == "ERROR"))


def alert(window: Windowed, minute: Minute) -> Alert:
    return Alert(window.key, window.start, minute.errors, minute.lines)


pipeline = Pipeline("log-alerts", dead_letters="logs.unreadable")

minutes = (
    pipeline.stream("logs", value=Line, starting="earliest")
    .group_by(lambda line: line.service, key=str)
    .windowed_by(TimeWindows.of("1 minute", grace="10 seconds"), on_close=True)
    .aggregate(Minute, counted)
)
minutes.to("log-minutes")
(
    minutes.to_stream()
    .filter(lambda minute: minute.errors > max(5, minute.lines / 10))
    .map(lambda window, minute: (window.key, alert(window, minute)), key=str, to=Alert)
    .to("alerts")
)
