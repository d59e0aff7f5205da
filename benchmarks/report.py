"""From the values of all rounds to JSON for docs/proofs and a table for docs/benchmarks.md."""

import json
import os
import platform
import shutil
import statistics
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rows import BY_KEY, ROWS, Row
from servers import REPOSITORY

BEGIN = "<!-- one broker: begin -->"
END = "<!-- one broker: end -->"

# server -> row -> one value a round
Rounds = dict[str, dict[str, list[float]]]


def summary(rounds: Rounds, ceiling: dict[str, float], rows: tuple[Row, ...] = ROWS) -> dict[str, Any]:
    """Every row that was measured: medians, spread, how many times better, and whether that is enough."""
    out: dict[str, Any] = {}
    for row in rows:
        measured = {name: values[row.key] for name, values in rounds.items() if values.get(row.key)}
        if measured:
            out[row.key] = _row(row, measured, ceiling.get(row.key))
    return out


def _row(row: Row, measured: dict[str, list[float]], ceiling: float | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"work": row.work, "unit": row.unit, "required": row.requirement()}
    for name, values in measured.items():
        spread = {"median": statistics.median(values), "min": min(values), "max": max(values)}
        entry[name] = {key: round(value, 4) for key, value in spread.items()} | {
            "values": [round(value, 4) for value in values]
        }
    if ceiling is not None:
        entry["null_server"] = round(ceiling, 4)
    if "penstock" in measured:
        entry |= _verdict(row, {name: statistics.median(values) for name, values in measured.items()})
    return entry


def _verdict(row: Row, medians: dict[str, float]) -> dict[str, Any]:
    ours = medians["penstock"]
    out: dict[str, Any] = {}
    if "kafka" in medians:
        out["times_better"] = round(row.better_by(ours, medians["kafka"]), 2)
        if row.ratio is not None:
            out["met"] = out["times_better"] >= row.ratio
    if row.limit is not None:
        out["met"] = ours < row.limit
    return out


def merged(published: Path, fresh: dict[str, Any], rows: tuple[Row, ...] = ROWS) -> dict[str, Any]:
    """What is published, with these rows in the place of those; each row that is not of the table's commit names its
    own."""
    if not published.exists():
        return fresh
    document: dict[str, Any] = json.loads(published.read_text())
    origin = {"commit": fresh["commit"], "measured_at": fresh["measured_at"]}
    found = document["rows"] | {key: {**entry, "origin": origin} for key, entry in fresh["rows"].items()}
    return document | {"rows": {row.key: found[row.key] for row in rows if row.key in found}}


def markdown(document: dict[str, Any], rows: dict[str, Row] = BY_KEY) -> str:
    """The table, and under it what it was measured with."""
    lines = [
        "| work | unit | Apache Kafka | Penstock | times better | required | met | null server |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_line(rows[key], entry) for key, entry in document["rows"].items()]
    return "\n".join([*lines, "", origin(document), *_later(document, rows)])


def origin(document: dict[str, Any]) -> str:
    """With what, on what and when it was measured."""
    machine, versions = document["machine"], document["versions"]
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    size = f"{machine['cpus']} processors ({machine['processor']}), {machine['memory_gb']} GB, {machine['system']}"
    told = state(document)
    rounds = "one round" if document["rounds"] == 1 else f"{document['rounds']} rounds"
    note = f"Medians of {rounds}, in parentheses the smallest and the largest"
    return f"{note}. {size}; {named}; {told}."


def state(measured: dict[str, Any]) -> str:
    """Of which sources and on which day."""
    head, _, changes = measured["commit"].partition("+")
    return f"commit {head[:12]}{' with ' if changes else ''}{changes}, {measured['measured_at'][:10]}"


def _later(document: dict[str, Any], rows: dict[str, Row]) -> list[str]:
    """The rows that were measured by themselves."""
    works: dict[str, list[str]] = {}
    for key, entry in document["rows"].items():
        if "origin" in entry:
            works.setdefault(state(entry["origin"]), []).append(rows[key].work)
    return [f"By themselves, at {told}: {'; '.join(dict.fromkeys(named))}." for told, named in works.items()]


def _line(row: Row, entry: dict[str, Any]) -> str:
    better = f"{entry['times_better']:.1f}" if "times_better" in entry else "–"
    met = {True: "yes", False: "**no**", None: "–"}[entry.get("met")]
    cells = [cell(row, entry.get("kafka")), cell(row, entry.get("penstock")), better, entry["required"], met]
    ceiling = f"{entry['null_server']:.{row.digits}f}" if "null_server" in entry else "–"
    return f"| {row.work} | {row.unit} | {' | '.join(cells)} | {ceiling} |"


def cell(row: Row, figures: dict[str, float] | None) -> str:
    if figures is None:
        return "–"
    median, low, high = (f"{figures[key]:.{row.digits}f}" for key in ("median", "min", "max"))
    return f"{median} ({low}–{high})"


def replace_between_markers(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    before, found, rest = page.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    assert found and ended, f"{page} lacks the markers {begin} and {end}"
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def machine() -> dict[str, Any]:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_gb": round(memory_bytes / 1e9),
        "system": f"{platform.system()} {platform.release()}",
        "load_average_before": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def tool_versions() -> dict[str, str]:
    return {
        "Python": platform.python_version(),
        "Java": _first_line(["java", "-version"]),
        "Go": _first_line(["go", "env", "GOVERSION"]),
    }


def _first_line(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return "absent"
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return ((done.stdout or done.stderr).splitlines() or ["unknown"])[0].strip()


def commit() -> str:
    """The commit, with `+changes` where the sources differ from it."""
    head = _git("rev-parse", "HEAD") or "unknown"
    return f"{head}+changes" if _git("status", "--porcelain", "--", "src", "benchmarks") else head


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
