"""Real-time metrics: thousands of readings become one row for each host, metric and minute, to be drawn as a chart.

The rows are a table: `penstock table serve metrics-by-minute` answers for any host and minute while the pipeline runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.pipeline import Pipeline, TimeWindows


@dataclass
class Reading:
    host: str
    metric: str
    value: float


@dataclass
class Summary:
    count: int = 0
    total: float = 0.0
    lowest: float = float("inf")
    highest: float = float("-inf")

    def plus(self, value: float) -> Summary:
        return Summary(self.count + 1, self.total + value, min(self.lowest, value), max(self.highest, value))


pipeline = Pipeline("metrics-by-minute")
(
    pipeline.stream("metrics", value=Reading, starting="earliest")
    .group_by(lambda reading: f"{reading.host}/{reading.metric}", key=str)
    .windowed_by(TimeWindows.of("1 minute", grace="30 seconds"))
    .aggregate(Summary, lambda summary, reading: summary.plus(reading.value))
    .to("metrics-by-minute")
)
