"""Three brokers against three of Apache Kafka's on the same machine, in the same run, alternating.

As benchmarks/run.py does with one: in each round each cluster is started fresh, measured and stopped. Topics have three
copies of which two must be in sync, and every load asks for acks=all. Only a full run writes
docs/proofs/bench-three-brokers.json and the table of docs/benchmarks.md.

    python benchmarks/cluster.py                              the full run, about 25 minutes
    python benchmarks/cluster.py --quick                      one short round
    python benchmarks/cluster.py --only single,e2e_p99
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import loads
import report
from cluster_rows import BY_KEY, ROWS
from cluster_steps import FULL, QUICK, STEPS, Bench, Sizes, chosen
from clusters import CLUSTERS, Cluster
from servers import REPOSITORY, ServerFailed

PROOF = REPOSITORY / "docs" / "proofs" / "bench-three-brokers.json"
PAGE = REPOSITORY / "docs" / "benchmarks.md"
SCRATCH = REPOSITORY / ".cache" / "bench"
MARKERS = ("<!-- three brokers: begin -->", "<!-- three brokers: end -->")
FULL_ROUNDS = 3
MAX_ROUNDS = 50
COMPARED = ["kafka", "penstock"]


def measure(cluster: Cluster, names: list[str], sizes: Sizes) -> dict[str, float]:
    """One round of one cluster: started, put through the steps, stopped, its data removed."""
    try:
        cluster.start()
        bench = Bench(cluster, sizes)
        values = {"start": cluster.start_s}
        for name in names:
            _note(f"  {cluster.name}: {name}")
            values |= STEPS[name].run(bench)
        cluster.stop()
        return values
    finally:
        cluster.kill()
        shutil.rmtree(cluster.directory)


def run(names: list[str], rows: set[str], rounds: int, sizes: Sizes) -> report.Rounds:
    collected: report.Rounds = {name: {} for name in names}
    for number in range(1, rounds + 1):
        # Who comes first alternates too: neither always meets the cooler or the warmer machine.
        for name in names if number % 2 else reversed(names):
            _note(f"round {number} of {rounds}: {name}")
            directory = Path(tempfile.mkdtemp(dir=SCRATCH, prefix=f"{name}-3-"))
            values = measure(CLUSTERS[name](directory), chosen(rows), sizes)
            for key in rows.intersection(values):
                collected[name].setdefault(key, []).append(values[key])
    return collected


def describe(collected: report.Rounds, rounds: int) -> dict[str, Any]:
    return {
        "commit": report.commit(),
        "measured_at": report.now(),
        "machine": report.machine(),
        "versions": {name: CLUSTERS[name].version() for name in collected} | report.tool_versions(),
        "rounds": rounds,
        "rows": report.summary(collected, {}, ROWS),
    }


def write(document: dict[str, Any], full: bool) -> None:
    proof = PROOF if full else SCRATCH / PROOF.name
    proof.parent.mkdir(parents=True, exist_ok=True)
    proof.write_text(json.dumps(document, indent=2) + "\n")
    table = report.markdown(document, BY_KEY)
    if full:
        report.replace_between_markers(PAGE, table, *MARKERS)
    print(table)
    _note(f"written: {proof}" + (f", {PAGE}" if full else ""))


def parse(arguments: list[str]) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, help=f"how often each cluster is measured (default {FULL_ROUNDS})")
    parser.add_argument("--only", help=f"rows, separated by commas: {', '.join(BY_KEY)}")
    parser.add_argument("--servers", default=",".join(COMPARED), help="which of kafka, penstock")
    parser.add_argument("--quick", action="store_true", help="short loads, one round unless --rounds says otherwise")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else FULL_ROUNDS)
    options.servers = options.servers.split(",")
    options.rows = set(options.only.split(",")) if options.only else set(BY_KEY)
    if not 1 <= options.rounds <= MAX_ROUNDS:
        parser.error(f"--rounds is 1 to {MAX_ROUNDS}")
    if unknown := sorted(options.rows - set(BY_KEY)):
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(BY_KEY)}")
    if unknown := sorted(set(options.servers) - set(CLUSTERS)):
        parser.error(f"no such server: {', '.join(unknown)}; there are {', '.join(CLUSTERS)}")
    return options


def is_full(options: argparse.Namespace) -> bool:
    whole = options.rows == set(BY_KEY) and options.servers == COMPARED
    return whole and not options.quick and options.rounds >= FULL_ROUNDS


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        loads.build()
        collected = run(options.servers, options.rows, options.rounds, QUICK if options.quick else FULL)
    except ServerFailed as failure:
        print(f"benchmark: {failure}", file=sys.stderr)
        return 1
    write(describe(collected, options.rounds), is_full(options))
    return 0


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
