"""`format("penstock")` on Penstock against Spark's own connector, on Apache Kafka and on the same broker, in one run.

Each format has a Spark session in a process of its own, with the same settings; both live through the whole run, as do
both brokers, and all wait while one is measured. Only a full run (the default sizes and at least three rounds) writes
docs/proofs/bench-spark.json and the table of docs/benchmarks.md; any other prints its table and leaves its JSON in
.cache/bench.

    python benchmarks/spark.py                        the full run: twenty minutes on two cores
    python benchmarks/spark.py --quick                one short round, to see that everything works
    python benchmarks/spark.py --broker kafka         both formats on Apache Kafka alone
    python benchmarks/spark.py --broker penstock      both formats on Penstock alone
    python benchmarks/spark.py --only stream          some steps of: read, write, first, stream, memory
    python benchmarks/spark.py --theirs write.kafka.batch.size=524288    an option for one side alone
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import report
import spark_report
import spark_topics as topics
from ports import free_port
from servers import REPOSITORY, ApacheKafka, Penstock, Server, ServerFailed, start
from spark_report import APACHE, OURS, THEIRS
from spark_sides import Side, connector_version
from spark_steps import Bench, Sizes, Values, first_row, read, read_tenth, records_topic, stream, write

PROOF = REPOSITORY / "docs" / "proofs" / "bench-spark.json"
PAGE = REPOSITORY / "docs" / "benchmarks.md"
SCRATCH = REPOSITORY / ".cache" / "bench"
FULL = Sizes()
QUICK = replace(FULL, records=20_000, stream_warm_s=5, stream_s=5)
FULL_ROUNDS = 3
MAX_ROUNDS = 50
STEPS = ("read", "write", "first", "stream", "memory")
TINY_TOPIC, TINY_RECORDS = "tiny", 400
WARM_STREAM_S = 5
ROOM_SHARE = 4
"""times the records of the largest size that have to be free for the broker: read, written by both, not yet deleted."""

OFTEN = "log.retention.check.interval.ms=1000"
"""how often brokers look for what is too old: see `topics.BRIEF`"""


class BriefKafka(ApacheKafka):
    def prepare(self, directory: Path, port: int) -> None:
        super().prepare(directory, port)
        with (directory / "server.properties").open("a") as properties:
            properties.write(f"{OFTEN}\n")


class BriefPenstock(Penstock):
    def command(self, directory: Path, port: int) -> list[str]:
        return [*super().command(directory, port), "--set", OFTEN]


BROKERS: dict[str, type[Server]] = {each.name: each for each in (BriefPenstock, BriefKafka)}
BOTH = "both"


@dataclass(frozen=True)
class Contestant:
    """One of those that are compared: a session, and the broker that it uses."""

    name: str
    side: Side
    bench: Bench


Step = Callable[[Bench, Side], Values]


def run(contestants: list[Contestant], names: list[str], rounds: int) -> spark_report.Rounds:
    """A smaller round that is not counted, then the rounds. Each step is done by all in turn before the next."""
    for bench in {one.bench.address: one.bench for one in contestants}.values():
        _prepare(bench, names)
    collected: spark_report.Rounds = {one.name: {} for one in contestants}
    for number in range(rounds + 1):
        warming = number == 0
        for name, step in _steps(contestants[0].bench.sizes, names, warming):
            # Who comes first alternates too: nobody always meets the cooler or the warmer machine.
            for one in contestants if number % 2 else reversed(contestants):
                _note(f"{'warming up' if warming else f'round {number} of {rounds}'}: {name}: {one.name}")
                values = step(one.bench, one.side)
                for key, value in () if warming else values.items():
                    collected[one.name].setdefault(key, []).append(value)
    return collected


def _prepare(bench: Bench, names: list[str]) -> None:
    topics.create(bench.address, TINY_TOPIC)
    topics.fill(bench.address, TINY_TOPIC, TINY_RECORDS, 100)
    for size in bench.sizes.value_bytes if {"read", "memory"}.intersection(names) else ():
        _note(f"writing {bench.sizes.records:,} records of {size} B")
        topics.create(bench.address, records_topic(size))
        topics.fill(bench.address, records_topic(size), bench.sizes.records, size)


def _steps(sizes: Sizes, names: list[str], warming: bool) -> Iterator[tuple[str, Step]]:
    share = sizes.warm_share if warming else 1.0
    stream_s = (0, WARM_STREAM_S) if warming else (sizes.stream_warm_s, sizes.stream_s)
    for size in sizes.value_bytes:
        if "read" in names:
            yield f"read {size} B", lambda bench, side, size=size: read(bench, side, size, share)
        if "write" in names:
            yield f"write {size} B", lambda bench, side, size=size: write(bench, side, size, share)
    if "memory" in names:
        yield "memory", lambda bench, side: read_tenth(bench, side) if side.name == OURS else {}
    if "first" in names:
        yield "first row", lambda bench, side: first_row(bench, side, TINY_TOPIC)
    if "stream" in names:
        yield "stream", lambda bench, side: stream(bench, side, *stream_s)


@contextmanager
def running(options: argparse.Namespace) -> Iterator[list[Contestant]]:
    """Brokers on empty directories and both sessions; none of them is left behind, nor what they wrote."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=SCRATCH, prefix="spark-")))
        benches = {
            name: Bench(_start(stack, name, options.data), options.sizes, scratch, options.more, options.exactly_once)
            for name in _brokers(options.broker)
        }
        sides = {}
        for name in (THEIRS, OURS):
            (scratch / name).mkdir()
            sides[name] = Side(name, scratch / name, options.memory)
            stack.callback(sides[name].close)
        same = next(iter(benches.values()))
        contestants = [Contestant(name, side, same) for name, side in sides.items()]
        if options.broker == BOTH:
            contestants.insert(0, Contestant(APACHE, sides[THEIRS], benches[BriefKafka.name]))
        yield contestants


def _brokers(chosen: str) -> list[str]:
    """The one that both formats use first."""
    return list(BROKERS) if chosen == BOTH else [chosen]


def _start(stack: ExitStack, name: str, data: Path) -> str:
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=data, prefix=f"penstock-bench-{name}-")))
    server, port = BROKERS[name](), free_port()
    server.prepare(directory, port)
    started = start(server, directory, port)
    stack.callback(started.kill)
    return started.address


def describe(options: argparse.Namespace) -> dict[str, Any]:
    """What is going to be measured with what, told before it is."""
    tools = report.tool_versions()
    return {
        "commit": report.commit(),
        "measured_at": report.now(),
        "machine": report.machine(),
        "versions": {
            "Spark": connector_version(),
            "its Kafka connector": connector_version(),
            **{f"broker {name}": BROKERS[name]().version() for name in _brokers(options.broker)},
            "Python": tools["Python"],
            "Java": tools["Java"],
        },
        "rounds": options.rounds,
        "records": options.sizes.records,
        "value_bytes": list(options.sizes.value_bytes),
        "memory_of_each_jvm": options.memory,
        "options": options.more,
    }


def judge(options: argparse.Namespace, collected: spark_report.Rounds) -> dict[str, Any]:
    rows = spark_report.all_rows(list(options.sizes.value_bytes))
    return {"rows": spark_report.summary(rows, collected), "besides": spark_report.besides(rows, collected)}


def write_results(document: dict[str, Any], full: bool) -> None:
    proof = PROOF if full else SCRATCH / PROOF.name
    proof.parent.mkdir(parents=True, exist_ok=True)
    proof.write_text(json.dumps(document, indent=2) + "\n")
    table = spark_report.markdown(document)
    if full:
        spark_report.replace_table(PAGE, table)
    print(table)
    for line in spark_report.unmet(document):
        _note(f"not met: {line}")
    _note(f"written: {proof}" + (f", {PAGE}" if full else ""))


def parse(arguments: list[str]) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, help=f"of each size (default {FULL.records:,})")
    parser.add_argument("--sizes", help="bytes of a value, separated by commas (default 100,1000)")
    parser.add_argument("--rounds", type=int, help=f"how often each side is measured (default {FULL_ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="few records, one round unless --rounds says otherwise")
    parser.add_argument("--only", default=",".join(STEPS), help=f"which of {', '.join(STEPS)}")
    parser.add_argument("--broker", choices=(BOTH, *BROKERS), default=BOTH)
    parser.add_argument("--memory", default="3g", help="of each JVM (default 3g)")
    parser.add_argument("--data", type=Path, default=SCRATCH, help="where the broker keeps its records (%(default)s)")
    parser.add_argument("--exactly-once", action="store_true", help="our stream writes in transactions")
    for side in ("ours", "theirs"):
        parser.add_argument(f"--{side}", action="append", default=[], metavar="read|write.OPTION=VALUE")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (1 if options.quick else FULL_ROUNDS)
    options.sizes = _sizes(options)
    options.steps = options.only.split(",")
    options.more = _more(OURS, options.ours) | _more(THEIRS, options.theirs)
    if not 1 <= options.rounds <= MAX_ROUNDS:
        parser.error(f"--rounds is 1 to {MAX_ROUNDS}")
    if unknown := sorted(set(options.steps) - set(STEPS)):
        parser.error(f"no such step: {', '.join(unknown)}; there are {', '.join(STEPS)}")
    return options


def _sizes(options: argparse.Namespace) -> Sizes:
    sizes = QUICK if options.quick else FULL
    if options.sizes:
        sizes = replace(sizes, value_bytes=tuple(int(size) for size in options.sizes.split(",")))
    return replace(sizes, records=options.records or sizes.records)


def _more(side: str, given: list[str]) -> dict[str, dict[str, str]]:
    """`read.minPartitions=8` as {"kafka.read": {"minPartitions": "8"}}."""
    out: dict[str, dict[str, str]] = {}
    for text in given:
        name, _, value = text.partition("=")
        kind, _, option = name.partition(".")
        out.setdefault(f"{side}.{kind}", {})[option] = value
    return out


def is_full(options: argparse.Namespace) -> bool:
    whole = options.sizes == FULL and set(options.steps) == set(STEPS) and not options.more
    return whole and options.broker == BOTH and not options.exactly_once and options.rounds >= FULL_ROUNDS


def check_room(data: Path, sizes: Sizes, brokers: int) -> None:
    data.mkdir(parents=True, exist_ok=True)
    needed, free = brokers * ROOM_SHARE * sizes.records * max(sizes.value_bytes), shutil.disk_usage(data).free
    if free < needed:
        raise ServerFailed(f"{needed / 1e9:.0f} GB are needed in {data}, and {free / 1e9:.0f} GB are free")


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    document = describe(options)
    # Ended from outside it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        check_room(options.data, options.sizes, len(_brokers(options.broker)))
        with running(options) as contestants:
            collected = run(contestants, options.steps, options.rounds)
    except ServerFailed as failure:
        print(f"benchmark: {failure}", file=sys.stderr)
        return 1
    write_results(document | judge(options, collected), is_full(options))
    return 0


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
