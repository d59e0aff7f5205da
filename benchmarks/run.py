"""One broker against Apache Kafka on the same machine, in the same run, alternating.

In each round each server is started fresh in an empty directory of the same disk, measured and stopped; never do two
run at once. Only a full run (every row, both servers, at least five rounds) writes docs/proofs/bench-one-broker.json
and the table of docs/benchmarks.md; any other prints its table and leaves its JSON in .cache/bench, unless it is told
to publish its rows among those of the last full run.

    python benchmarks/run.py                                    the full run, about half an hour
    python benchmarks/run.py --quick                            one short round, to see that everything works
    python benchmarks/run.py --only consume,e2e_p99 --rounds 3  some rows
    python benchmarks/run.py --only txn_100,share --publish     some rows into the table
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import loads
import report
import steps
from options import Choice, note
from ports import free_port
from rows import BY_KEY
from servers import REPOSITORY, SERVERS, Server, ServerFailed, start

PROOF = REPOSITORY / "docs" / "proofs" / "bench-one-broker.json"
PAGE = REPOSITORY / "docs" / "benchmarks.md"
SCRATCH = REPOSITORY / ".cache" / "bench"
CHOICE = Choice((__doc__ or "").partition("\n")[0], BY_KEY, SERVERS, full_rounds=5)
# What says something about the client: on the null server nothing is stored that could be started or grow.
CEILING_STEPS = ("produce_100", "consume", "produce_100_small", "produce_1000", "single", "end_to_end")


def measure(server: Server, names: list[str], sizes: steps.Sizes) -> dict[str, float]:
    """One round of one server: started, put through the steps, stopped, its data removed."""
    directory = Path(tempfile.mkdtemp(dir=SCRATCH, prefix=f"{server.name}-"))
    try:
        port = free_port()
        server.prepare(directory, port)
        running = start(server, directory, port)
        values = {"start": running.start_s}
        try:
            bench = steps.Bench(running, sizes)
            for name in names:
                note(f"  {server.name}: {name}")
                values |= steps.STEPS[name].run(bench)
            running.stop()
        finally:
            running.kill()
        return values
    finally:
        shutil.rmtree(directory)


def measure_partitions(server: Server, sizes: steps.Sizes) -> dict[str, float]:
    """Make ten thousand partitions, stop, and look at the start with all of them."""
    directory = Path(tempfile.mkdtemp(dir=SCRATCH, prefix=f"{server.name}-"))
    note(f"  {server.name}: 10,000 partitions")
    try:
        port = free_port()
        server.prepare(directory, port)
        running = start(server, directory, port)
        try:
            steps.create_many_partitions(steps.Bench(running, sizes))
            running.stop()
            running = start(server, directory, port)
            values = steps.many_partitions(steps.Bench(running, sizes))
            running.stop()
        finally:
            running.kill()
        return values
    finally:
        shutil.rmtree(directory)


def run(names: list[str], rows: set[str], rounds: int, sizes: steps.Sizes) -> report.Rounds:
    chosen = steps.chosen(rows, steps.STEPS)
    collected: report.Rounds = {name: {} for name in names}
    for number in range(1, rounds + 1):
        # Who comes first alternates too: neither always meets the cooler or the warmer machine.
        for name in names if number % 2 else reversed(names):
            note(f"round {number} of {rounds}: {name}")
            values = measure(SERVERS[name](), served(name, chosen), sizes)
            if name == "penstock" and rows.intersection(steps.PARTITIONS_ROWS):
                values |= measure_partitions(SERVERS[name](), sizes)
            for key in rows.intersection(values):
                collected[name].setdefault(key, []).append(values[key])
    return collected


def served(server: str, names: list[str]) -> list[str]:
    return [name for name in names if server != "null" or name not in steps.NEEDS_A_BROKER]


def ceiling(rows: set[str], sizes: steps.Sizes) -> dict[str, float]:
    """The same loads on the server that does nothing, once."""
    names = [name for name in steps.chosen(rows, steps.STEPS) if name in CEILING_STEPS]
    filled = {key for name in names for key in steps.STEPS[name].rows}
    values = measure(SERVERS["null"](), names, sizes) if names else {}
    return {key: value for key, value in values.items() if key in filled}


def describe(collected: report.Rounds, client: dict[str, float], rounds: int) -> dict[str, Any]:
    servers = {name: SERVERS[name]().version() for name in collected}
    return {
        "commit": report.commit(),
        "measured_at": report.now(),
        "machine": report.machine(),
        "versions": servers | report.tool_versions(),
        "rounds": rounds,
        "rows": report.summary(collected, client),
    }


def write(document: dict[str, Any], full: bool, merge: bool = False) -> None:
    """A `full` run is published as it is; one of some rows, where asked to `merge`, among the others."""
    if merge and not full:
        document, full = report.merged(PROOF, document), True
    proof = PROOF if full else SCRATCH / "bench-one-broker.json"
    proof.parent.mkdir(parents=True, exist_ok=True)
    proof.write_text(json.dumps(document, indent=2) + "\n")
    table = report.markdown(document)
    if full:
        report.replace_between_markers(PAGE, table)
    print(table)
    note(f"written: {proof}" + (f", {PAGE}" if full else ""))


def main(arguments: list[str]) -> int:
    options = CHOICE.parse(arguments)
    sizes = steps.QUICK if options.quick else steps.FULL
    try:
        loads.build()
        collected = run(options.servers, options.rows, options.rounds, sizes)
        client = ceiling(options.rows, sizes)
    except ServerFailed as failure:
        print(f"benchmark: {failure}", file=sys.stderr)
        return 1
    write(describe(collected, client, options.rounds), CHOICE.is_full(options), merge=options.publish)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
