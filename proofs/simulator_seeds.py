"""Whole clusters in simulation, seed by seed, under faults: no invariant is violated and every client finishes.

PENSTOCK_SIM_SEEDS=1-1000, PENSTOCK_SIM_EVENTS=100000 and PENSTOCK_SIM_WORKERS=2 change the size. What is done is kept
beside the caches, by the code that a simulation runs: a run that was ended goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from penstock.sim.run import Report, simulate_seed

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("base", "protocol", "records", "core", "wire", "broker", "sim")
"""what a simulation is made of; they import nothing of ours besides"""
RUNS_PER_PROCESS = 10
"""then another takes its place: what a run leaves in memory goes with it"""
EXAMPLES_MAX = 5


def run(seeds: str = "", events: int = 0, workers: int = 0, nodes: int = 3) -> dict[str, object]:
    first, _, last = (seeds or os.environ.get("PENSTOCK_SIM_SEEDS", "1-1000")).partition("-")
    events = events or int(os.environ.get("PENSTOCK_SIM_EVENTS", "100000"))
    workers = workers or int(os.environ.get("PENSTOCK_SIM_WORKERS", "2"))
    wanted = range(int(first), int(last or first) + 1)
    path = ROOT / ".cache" / "simulator" / f"{source_tree()}-{nodes}-{events}.jsonl"
    done = {one["seed"]: one for one in read_lines(path)}
    run_all([seed for seed in wanted if seed not in done], nodes, events, workers, path)
    results = [one for one in read_lines(path) if one["seed"] in wanted]
    figures = {
        "seeds": f"{wanted[0]}-{wanted[-1]}",
        "nodes": nodes,
        "events_a_seed": events,
        "simulated_code": source_tree(),
    } | summed(results)
    violated = [f"seed {one['seed']}: {text}" for one in results for text in one["violations"]]
    assert not violated, f"{len(violated)} violations: {'; '.join(violated[:EXAMPLES_MAX])}"
    return figures


def run_all(seeds: list[int], nodes: int, events: int, workers: int, path: Path) -> None:
    """Each result a line of the file, as they come."""
    path.parent.mkdir(parents=True, exist_ok=True)
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(workers, maxtasksperchild=RUNS_PER_PROCESS) as pool, path.open("a") as out:
        for result in pool.imap_unordered(partial(one_seed, nodes=nodes, events=events), seeds):
            out.write(json.dumps(result) + "\n")
            out.flush()


def one_seed(seed: int, nodes: int, events: int) -> dict[str, Any]:
    began_s = time.process_time()
    report = simulate_seed(seed, nodes, events)
    return told(report, time.process_time() - began_s)


def told(report: Report, cpu_s: float) -> dict[str, Any]:
    return {
        "seed": report.options.seed,
        "events": report.events,
        "cpu_s": round(cpu_s, 3),
        "virtual_s": round(report.virtual_s, 3),
        "injected": report.injected,
        "acked": report.acked,
        "read": report.read,
        "near": report.near,
        "far": report.far,
        "digest": report.digest,
        "violations": [str(one) for one in report.violations],
    }


def summed(results: Iterable[dict[str, Any]]) -> dict[str, object]:
    results = list(results)
    injected: Counter[str] = Counter()
    for one in results:
        injected.update(one["injected"])
    total = {name: sum(one[name] for one in results) for name in ("events", "cpu_s", "virtual_s", "acked", "read")}
    return {
        "runs": len(results),
        "events": total["events"],
        "cpu_seconds": round(total["cpu_s"]),
        "events_per_cpu_second": round(total["events"] / max(total["cpu_s"], 1e-9)),
        "virtual_hours": round(total["virtual_s"] / 3600, 1),
        "faults": sum(injected.values()),
        "injected": dict(sorted(injected.items())),
        "records_acked": total["acked"],
        "records_read": total["read"],
        "runs_with_violations": sum(bool(one["violations"]) for one in results),
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    """One result a line; the last may be cut off where the run was ended."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def source_tree() -> str:
    """What the code of a simulation is, whatever else a commit changed."""
    places = [f"HEAD:src/penstock/{room}" for room in ROOMS]
    command = ["git", "rev-parse", *places]
    trees = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return hashlib.sha256(trees.encode()).hexdigest()[:12]
