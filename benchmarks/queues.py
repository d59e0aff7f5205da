"""Fifty consumers at one durable queue: Penstock, Apache Kafka and RabbitMQ on the same machine, in the same run.

On Penstock and Apache Kafka the queue is one partition that a share group consumes; on RabbitMQ a durable classic queue
and, as another server, a quorum queue. In each round each server is started fresh in an empty directory of the same
disk, measured and stopped; never do two run at once, and who comes first alternates. Only a full run writes
docs/proofs/bench-queues.json and its table of docs/benchmarks.md.

    python benchmarks/queues.py                                   the full run, about ten minutes
    python benchmarks/queues.py --quick --servers penstock        one short round
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import queue_load
import rabbitmq
import report
from options import Choice, note
from ports import free_port
from rows import SHARE_ROWS, Row
from servers import REPOSITORY, SERVERS, Running, ServerFailed, start
from steps import share_values

PROOF = REPOSITORY / "docs" / "proofs" / "bench-queues.json"
PAGE = REPOSITORY / "docs" / "benchmarks.md"
SCRATCH = REPOSITORY / ".cache" / "bench"
MARKERS = ("<!-- queues: begin -->", "<!-- queues: end -->")
BY_KEY = {row.key: row for row in SHARE_ROWS}
PREFETCH = 100
"""messages that RabbitMQ sends a consumer before it has acknowledged any"""
DELIVERIES = ("sent", "accepted", "accepted_twice", "redelivered")


class Contestant(NamedTuple):
    title: str
    server: str
    program: str
    options: dict[str, object]


CONTESTANTS = {
    "kafka": Contestant("Apache Kafka", "kafka", queue_load.SHARE, {"replicas": 1}),
    "penstock": Contestant("Penstock", "penstock", queue_load.SHARE, {"replicas": 1}),
    "classic": Contestant(
        "RabbitMQ, classic", "rabbitmq", queue_load.RABBIT, {"queue_type": "classic", "prefetch": PREFETCH}
    ),
    "quorum": Contestant(
        "RabbitMQ, quorum", "rabbitmq", queue_load.RABBIT, {"queue_type": "quorum", "prefetch": PREFETCH}
    ),
}
RABBITS = ("classic", "quorum")
CHOICE = Choice((__doc__ or "").partition("\n")[0], BY_KEY, CONTESTANTS, full_rounds=3, compared=tuple(CONTESTANTS))


def measure(one: Contestant, sizes: queue_load.QueueSizes) -> queue_load.QueueMeasured:
    directory = Path(tempfile.mkdtemp(dir=SCRATCH, prefix=f"{one.server}-queue-"))
    try:
        return _on_rabbitmq(one, directory, sizes) if one.server == "rabbitmq" else _on_kafka(one, directory, sizes)
    finally:
        shutil.rmtree(directory)


def _on_kafka(one: Contestant, directory: Path, sizes: queue_load.QueueSizes) -> queue_load.QueueMeasured:
    server, port = SERVERS[one.server](), free_port()
    server.prepare(directory, port)
    return _measured(one, start(server, directory, port), sizes)


def _on_rabbitmq(one: Contestant, directory: Path, sizes: queue_load.QueueSizes) -> queue_load.QueueMeasured:
    server, port = rabbitmq.RabbitMQ(), free_port()
    server.prepare(directory, port)
    try:
        return _measured(one, start(server, directory, port, rabbitmq.answers), sizes)
    finally:
        server.clean_up()


def _measured(one: Contestant, running: Running, sizes: queue_load.QueueSizes) -> queue_load.QueueMeasured:
    try:
        measured = queue_load.measure(running, one.program, sizes, name="queue", **one.options)
        running.stop()
        return measured
    finally:
        running.kill()


def run(names: list[str], rows: set[str], rounds: int, sizes: queue_load.QueueSizes) -> dict[str, Any]:
    """The values of all rounds, and what became of all records."""
    collected: report.Rounds = {name: {} for name in names}
    deliveries = {name: dict.fromkeys(DELIVERIES, 0) for name in names}
    for number in range(1, rounds + 1):
        for name in names if number % 2 else reversed(names):
            note(f"round {number} of {rounds}: {name}")
            measured = measure(CONTESTANTS[name], sizes)
            for key, value in share_values(measured).items():
                if key in rows:
                    collected[name].setdefault(key, []).append(value)
            for key in DELIVERIES:
                deliveries[name][key] += measured.result[key]
    return {"collected": collected, "deliveries": deliveries}


def describe(found: dict[str, Any], rounds: int, sizes: queue_load.QueueSizes) -> dict[str, Any]:
    names = list(found["collected"])
    return {
        "commit": report.commit(),
        "measured_at": report.now(),
        "machine": report.machine(),
        "versions": {CONTESTANTS[name].server: version(name) for name in names} | report.tool_versions(),
        "rounds": rounds,
        "consumers": sizes.consumers,
        "rate_per_s": sizes.rate,
        "deliveries": found["deliveries"],
        "rows": report.summary(found["collected"], {}, SHARE_ROWS),
    }


def version(name: str) -> str:
    server = CONTESTANTS[name].server
    return rabbitmq.RabbitMQ().version() if server == "rabbitmq" else SERVERS[server]().version()


def markdown(document: dict[str, Any]) -> str:
    names = [name for name in CONTESTANTS if name in document["deliveries"]]
    titles = [CONTESTANTS[name].title for name in names]
    head = ["work", "unit", *titles, "times better than Kafka", "than the better RabbitMQ"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for key, entry in document["rows"].items():
        row = BY_KEY[key]
        cells = [row.work, row.unit, *(report.cell(row, entry.get(name)) for name in names)]
        lines.append(f"| {' | '.join([*cells, _times(row, entry, ['kafka']), _times(row, entry, RABBITS)])} |")
    again = ", ".join(f"{CONTESTANTS[name].title} {document['deliveries'][name]['redelivered']}" for name in names)
    told = f"Every record was accepted exactly once; delivered more than once: {again}."
    return "\n".join([*lines, "", told, report.origin(document)])


def _times(row: Row, entry: dict[str, Any], others: list[str] | tuple[str, ...]) -> str:
    """How many times better Penstock is than the best of those."""
    if "penstock" not in entry or not any(name in entry for name in others):
        return "–"
    ours = entry["penstock"]["median"]
    ratios = [row.better_by(ours, entry[name]["median"]) for name in others if name in entry]
    return f"{min(ratios):.1f}"


def write(document: dict[str, Any], full: bool) -> None:
    proof = PROOF if full else SCRATCH / PROOF.name
    proof.parent.mkdir(parents=True, exist_ok=True)
    proof.write_text(json.dumps(document, indent=2) + "\n")
    table = markdown(document)
    if full:
        report.replace_between_markers(PAGE, table, *MARKERS)
    print(table)
    note(f"written: {proof}" + (f", {PAGE}" if full else ""))


def main(arguments: list[str]) -> int:
    options = CHOICE.parse(arguments)
    sizes = queue_load.QUICK if options.quick else queue_load.FULL
    SCRATCH.mkdir(parents=True, exist_ok=True)
    try:
        found = run(options.servers, options.rows, options.rounds, sizes)
    except ServerFailed as failure:
        print(f"benchmark: {failure}", file=sys.stderr)
        return 1
    write(describe(found, options.rounds, sizes), CHOICE.is_full(options))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
