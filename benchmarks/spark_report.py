"""The rows of the Spark benchmark and what becomes of their values: JSON for docs/proofs, a table for the page."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import report
from rows import Row

BEGIN = "<!-- spark: begin -->"
END = "<!-- spark: end -->"
OURS, THEIRS = "penstock", "kafka"
"""the names of their formats in Spark."""
APACHE = "apache"
"""Spark's connector on a broker of Apache Kafka's: what there is without any part of Penstock."""
SIDES = {THEIRS: "Spark's connector on Penstock", APACHE: "Spark's connector on Apache Kafka", OURS: "Penstock"}
RATIO = 2
"""how many times faster than Spark's own connector batch reads and writes have to be."""
JUDGED = {THEIRS: ("times_better", "met"), APACHE: ("times_better_than_apache", "met_against_apache")}
"""how many times better, and whether that is enough, by whom it is compared with."""
PYTHON_MB = 1_000
"""what the Python workers of both cores may have resident together."""


@dataclass(frozen=True)
class SizeRows:
    """The keys of the rows for records of one size."""

    size: int

    def key(self, name: str) -> str:
        return f"{name}_{self.size}"

    def rows(self) -> list[Row]:
        rate, text = "k records/s", f"{self.size} B"
        return [
            Row(self.key("read"), f"read {text}, every column", rate, True, ratio=RATIO, digits=0),
            Row(self.key("read_cpu"), "its CPU a million records", "s"),
            Row(self.key("total"), f"read {text}, sum(length(value))", rate, True, ratio=RATIO, digits=0),
            Row(self.key("columns"), f"the same, with columns=value for Penstock, {text}", rate, True, digits=0),
            Row(self.key("write"), f"write {text}", rate, True, ratio=RATIO, digits=0),
            Row(self.key("write_cpu"), "its CPU a million records", "s"),
            Row(self.key("frame"), f"the rows of that write without a topic, {text}", rate, True, digits=0),
        ]


def all_rows(sizes: list[int]) -> list[Row]:
    largest = f"{max(sizes)} B"
    return [
        *(row for size in sizes for row in SizeRows(size).rows()),
        Row("first_row", "a tiny read until its first row, warm", "ms", digits=0),
        Row("stream_p50", "topic to topic at 1,000 records/s, p50", "ms", digits=0),
        Row("stream_p99", "topic to topic at 1,000 records/s, p99", "ms", digits=0),
        Row("stream_batch_ms", "its batches, time each", "ms", digits=0),
        Row("python_read", f"both Python workers while {largest} are read", "MB", limit=PYTHON_MB, digits=0),
        Row("python_read_tenth", "while a tenth of that is read", "MB", limit=PYTHON_MB, digits=0),
        Row("python_write", f"both Python workers while {largest} are written", "MB", limit=PYTHON_MB, digits=0),
        Row("python_write_all", "every Python process of the session then", "MB", digits=0),
    ]


# side -> row -> one value a round
Rounds = dict[str, dict[str, list[float]]]


def summary(rows: list[Row], rounds: Rounds) -> dict[str, Any]:
    """Every row that was measured: medians, spread, how many times better, and whether that is enough."""
    out: dict[str, Any] = {}
    for row in rows:
        measured = {side: values[row.key] for side, values in rounds.items() if values.get(row.key)}
        if measured:
            out[row.key] = _entry(row, measured)
    return out


def besides(rows: list[Row], rounds: Rounds) -> dict[str, dict[str, float]]:
    """Medians of what was measured and has no row, such as the phases of a streaming batch."""
    keys = {row.key for row in rows}
    return {
        side: {key: round(statistics.median(one), 4) for key, one in values.items() if key not in keys}
        for side, values in rounds.items()
    }


def _entry(row: Row, measured: dict[str, list[float]]) -> dict[str, Any]:
    entry: dict[str, Any] = {"work": row.work, "unit": row.unit, "digits": row.digits, "required": row.requirement()}
    for side, values in measured.items():
        spread = {"median": statistics.median(values), "min": min(values), "max": max(values)}
        rounded = {name: round(value, 4) for name, value in spread.items()}
        entry[side] = rounded | {"values": [round(value, 4) for value in values]}
    if OURS not in measured:
        return entry
    ours = statistics.median(measured[OURS])
    for side, (times, met) in JUDGED.items():
        if side in measured:
            entry[times] = round(row.better_by(ours, statistics.median(measured[side])), 2)
            if row.ratio is not None:
                entry[met] = entry[times] >= row.ratio
    if row.limit is not None:
        entry["met"] = ours < row.limit
    return entry


def unmet(document: dict[str, Any]) -> list[str]:
    """What was required and is not there, in words."""
    return [
        f"{entry['work']}: {entry.get(times, entry[OURS]['median'])} where {entry['required']} is required"
        + ("" if side == THEIRS else f", of {SIDES[side]}")
        for entry in document["rows"].values()
        for side, (times, met) in JUDGED.items()
        if entry.get(met) is False
    ]


def markdown(document: dict[str, Any]) -> str:
    """The table, and under it what it was measured with."""
    compared = ["times better, same broker", "met", "times better than on Apache Kafka", "met"]
    head = ["work", "unit", *SIDES.values(), "required", *compared]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [_line(entry) for entry in document["rows"].values()]
    machine = document["machine"]
    rounds = "one round" if document["rounds"] == 1 else f"{document['rounds']} rounds"
    sentences = [
        f"Medians of {rounds}, in parentheses the smallest and the largest",
        f"{document['records']:,} records of each size",
        f"{machine['cpus']} processors ({machine['processor']}), {machine['memory_gb']} GB, {machine['system']}",
        ", ".join(f"{name} {version}" for name, version in document["versions"].items()),
        report.state(document),
    ]
    return "\n".join([*lines, "", "; ".join(sentences) + "."])


def _line(entry: dict[str, Any]) -> str:
    cells = [_cell(entry.get(side), entry["digits"]) for side in SIDES] + [entry["required"]]
    for times, met in JUDGED.values():
        cells.append(f"{entry[times]:.1f}" if times in entry else "–")
        cells.append({True: "yes", False: "**no**", None: "–"}[entry.get(met)])
    return f"| {entry['work']} | {entry['unit']} | {' | '.join(cells)} |"


def _cell(figures: dict[str, float] | None, digits: int) -> str:
    if figures is None:
        return "–"
    median, low, high = (f"{figures[key]:.{digits}f}" for key in ("median", "min", "max"))
    return f"{median} ({low}–{high})"


def replace_table(page: Path, text: str) -> None:
    report.replace_between_markers(page, text, BEGIN, END)
