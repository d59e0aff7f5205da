"""Three brokers against three of Apache Kafka's on the same machine, in the same run, alternating.

As benchmarks/run.py does with one: in each round each cluster is started fresh, measured and stopped. Topics have three
copies of which two must be in sync, and every load asks for acks=all. Only a full run writes
docs/proofs/bench-three-brokers.json and the table of docs/benchmarks.md.

    python benchmarks/cluster.py                              the full run, about 25 minutes
    python benchmarks/cluster.py --quick                      one short round
    python benchmarks/cluster.py --only single,e2e_p99
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import loads
import report
from cluster_rows import BY_KEY, ROWS
from cluster_steps import FULL, QUICK, STEPS, Bench, Sizes
from clusters import CLUSTERS, Cluster
from options import Choice, note
from servers import REPOSITORY, ServerFailed
from steps import chosen

PROOF = REPOSITORY / "docs" / "proofs" / "bench-three-brokers.json"
PAGE = REPOSITORY / "docs" / "benchmarks.md"
SCRATCH = REPOSITORY / ".cache" / "bench"
MARKERS = ("<!-- three brokers: begin -->", "<!-- three brokers: end -->")
CHOICE = Choice((__doc__ or "").partition("\n")[0], BY_KEY, CLUSTERS, full_rounds=3)


def measure(cluster: Cluster, names: list[str], sizes: Sizes) -> dict[str, float]:
    """One round of one cluster: started, put through the steps, stopped, its data removed."""
    try:
        cluster.start()
        bench = Bench(cluster, sizes)
        values = {"start": cluster.start_s}
        for name in names:
            note(f"  {cluster.name}: {name}")
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
            note(f"round {number} of {rounds}: {name}")
            directory = Path(tempfile.mkdtemp(dir=SCRATCH, prefix=f"{name}-3-"))
            values = measure(CLUSTERS[name](directory), chosen(rows, STEPS), sizes)
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


def write(document: dict[str, Any], full: bool, merge: bool = False) -> None:
    """A `full` run is published as it is; one of some rows, where asked to `merge`, among the others."""
    if merge and not full:
        document, full = report.merged(PROOF, document, ROWS), True
    proof = PROOF if full else SCRATCH / PROOF.name
    proof.parent.mkdir(parents=True, exist_ok=True)
    proof.write_text(json.dumps(document, indent=2) + "\n")
    table = report.markdown(document, BY_KEY)
    if full:
        report.replace_between_markers(PAGE, table, *MARKERS)
    print(table)
    note(f"written: {proof}" + (f", {PAGE}" if full else ""))


def main(arguments: list[str]) -> int:
    options = CHOICE.parse(arguments)
    try:
        loads.build()
        collected = run(options.servers, options.rows, options.rounds, QUICK if options.quick else FULL)
    except ServerFailed as failure:
        print(f"benchmark: {failure}", file=sys.stderr)
        return 1
    write(describe(collected, options.rounds), CHOICE.is_full(options), merge=options.publish)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
