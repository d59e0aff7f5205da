"""The measurements: each step puts one load on a running server and returns the rows that it fills.

A step warms the server up with the same load first: a JVM needs seconds until its compiler is done, and gets them.
Written pages are flushed between warming up and measuring, so that no step pays for what an earlier one left dirty.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import queue_load
from loads import IdleConnections, Measured, load, transactions
from memory import MEMORY
from rows import SHARE_ROWS, TRANSACTION_ROWS
from servers import Running

Values = dict[str, float]

PARTITIONS = 4
CONNECTIONS = 4
WINDOW = 5  # max.in.flight.requests.per.connection of the Java producer
IDLE_CONNECTIONS = 2_000
TRANSACTION_SIZES = (100, 1_000)
MANY_PARTITIONS_TOPICS = 10
MANY_PARTITIONS_EACH = 1_000

# What a producer at full speed makes of each size with a limit of 1 MB a batch and 10,000 buffered records, franz-go's
# defaults: with five requests under way 2,000 records of 100 B a batch (220 kB), and batches of 1000 B up to the 1 MB.
BATCH_100 = {"value_bytes": 100, "batch_records": 2_000, "connections": CONNECTIONS, "window": WINDOW, "acks": 1}
# The Java producer's batch.size is 16 KiB.
BATCH_SMALL = {**BATCH_100, "batch_records": 148}
BATCH_1000 = {"value_bytes": 1_000, "batch_records": 980, "connections": CONNECTIONS, "window": WINDOW, "acks": 1}
SINGLE = {"value_bytes": 100, "batch_records": 1, "connections": CONNECTIONS, "window": 1, "acks": 1}


@dataclass(frozen=True)
class Sizes:
    """How much of everything: each load ends at its records or its seconds, whichever comes first."""

    memory_ready: bool = True
    settle_s: float = 5.0
    warm_s: float = 8.0
    warm_100: int = 8_000_000
    records_100: int = 12_000_000
    records_small: int = 6_000_000
    warm_1000: int = 1_000_000
    records_1000: int = 1_000_000
    warm_consume: int = 60_000_000
    records_consume: int = 60_000_000
    single_first: int = 20_000
    single_s: float = 8.0
    e2e_warm_s: float = 5.0
    e2e_s: float = 20.0
    limit_s: float = 60.0
    idle_cpu_s: float = 10.0
    transactions_warm_s: float = 4.0
    transactions_s: float = 5.0
    queue: queue_load.QueueSizes = queue_load.SHORT


FULL = Sizes()
QUICK = replace(
    FULL,
    memory_ready=False,
    settle_s=1.0,
    warm_s=2.0,
    warm_100=500_000,
    records_100=1_000_000,
    records_small=300_000,
    warm_1000=50_000,
    records_1000=100_000,
    warm_consume=1_000_000,
    records_consume=2_000_000,
    single_first=2_000,
    single_s=1.0,
    e2e_warm_s=1.0,
    e2e_s=2.0,
    idle_cpu_s=2.0,
    transactions_warm_s=0.5,
    transactions_s=1.5,
    queue=queue_load.QUICK,
)


@dataclass
class Bench:
    """One server under measurement, the sizes, and which topics it already has."""

    server: Running
    sizes: Sizes

    def __post_init__(self) -> None:
        self.topics: set[str] = set()

    def topic(self, name: str, partitions: int) -> str:
        if name not in self.topics:
            load(self.server, "create", topic=name, partitions=partitions)
            self.topics.add(name)
        return name

    def memory_mb(self) -> float:
        return self.server.usage().rss_bytes / 1e6


def idle(bench: Bench) -> Values:
    time.sleep(bench.sizes.settle_s)
    return {"memory_idle": bench.memory_mb()}


def connections(bench: Bench) -> Values:
    topic = bench.topic("connections", 1)
    before = bench.memory_mb()
    with IdleConnections(bench.server, IDLE_CONNECTIONS, topic):
        time.sleep(bench.sizes.settle_s)
        more = bench.memory_mb() - before
    return {"connections_memory": max(more, 0.1)}


def single_first(bench: Bench) -> Values:
    """Without warming up, on purpose: what a test suite or a short-lived broker sees."""
    options = {**SINGLE, "connections": 1, "topic": bench.topic("single-first", 1)}
    measured = load(bench.server, "produce", records=bench.sizes.single_first, seconds=bench.sizes.limit_s, **options)
    return {"single_first": _rate(measured) / 1e3, "single_first_cpu": cpu_us(measured)}


def produce_100(bench: Bench) -> Values:
    measured = _produce(bench, "load-100", BATCH_100, bench.sizes.warm_100, bench.sizes.records_100)
    return {"produce_100": _rate(measured) / 1e6, "produce_100_cpu": cpu_us(measured)}


def produce_100_small(bench: Bench) -> Values:
    measured = _produce(bench, "load-small", BATCH_SMALL, bench.sizes.records_small, bench.sizes.records_small)
    return {"produce_100_small": _rate(measured) / 1e6, "produce_100_small_cpu": cpu_us(measured)}


def produce_1000(bench: Bench) -> Values:
    measured = _produce(bench, "load-1000", BATCH_1000, bench.sizes.warm_1000, bench.sizes.records_1000)
    return {"produce_1000": measured.result["mb_per_s"]}


def _produce(bench: Bench, name: str, options: dict[str, int], warm: int, records: int) -> Measured:
    topic, sizes = bench.topic(name, PARTITIONS), bench.sizes
    load(bench.server, "produce", topic=topic, records=warm, seconds=sizes.warm_s, **options)
    os.sync()
    if sizes.memory_ready:
        MEMORY.make_ready()
    return load(bench.server, "produce", topic=topic, records=records, seconds=sizes.limit_s, **options)


def consume(bench: Bench) -> Values:
    """Reads what `produce_100` wrote, from the page cache; the warm-up checks every checksum and offset."""
    sizes = bench.sizes
    options = {"topic": "load-100", "connections": CONNECTIONS}
    load(bench.server, "consume", records=sizes.warm_consume, seconds=sizes.warm_s, verify=True, **options)
    measured = load(bench.server, "consume", records=sizes.records_consume, seconds=sizes.limit_s, **options)
    return {"consume": _rate(measured) / 1e6, "consume_cpu": cpu_us(measured)}


def single(bench: Bench) -> Values:
    topic, sizes = bench.topic("single", PARTITIONS), bench.sizes
    load(bench.server, "produce", topic=topic, records=10**9, seconds=sizes.warm_s, **SINGLE)
    measured = load(bench.server, "produce", topic=topic, records=10**9, seconds=sizes.single_s, **SINGLE)
    return {"single": _rate(measured) / 1e3, "single_cpu": cpu_us(measured)}


def end_to_end(bench: Bench) -> Values:
    topic, sizes = bench.topic("end-to-end", 1), bench.sizes
    load(bench.server, "e2e", topic=topic, rate=1_000, seconds=sizes.e2e_warm_s, acks=1)
    result = load(bench.server, "e2e", topic=topic, rate=1_000, seconds=sizes.e2e_s, acks=1).result
    return {"e2e_p50": result["p50_ms"], "e2e_p99": result["p99_ms"], "e2e_p999": result["p999_ms"]}


def transactional(bench: Bench) -> Values:
    topic, sizes = bench.topic("transactions", PARTITIONS), bench.sizes
    values: Values = {}
    for size in TRANSACTION_SIZES:
        options = {"topic": topic, "partitions": PARTITIONS, "producers": CONNECTIONS, "size": size}
        transactions(bench.server, seconds=sizes.transactions_warm_s, **options)
        os.sync()
        measured = transactions(bench.server, seconds=sizes.transactions_s, **options)
        values |= transaction_values(size, measured)
    return values


def transaction_values(size: int, measured: Measured) -> Values:
    result = measured.result
    return {
        f"txn_{size}": result["transactions_per_s"],
        f"txn_{size}_records": result["records_per_s"] / 1e3,
        f"txn_{size}_cpu": measured.server_cpu_s / result["transactions"] * 1e6,
    }


def share(bench: Bench) -> Values:
    """Consumers and their acknowledgements as benchmarks/queueing has them; every record is accepted once."""
    options = {"name": "shared", "replicas": 1}
    return share_values(queue_load.measure(bench.server, queue_load.SHARE, bench.sizes.queue, **options))


def share_values(measured: queue_load.QueueMeasured) -> Values:
    result = measured.result
    return {
        "share": result["records_per_s"] / 1e3,
        "share_cpu": measured.cpu_us,
        "share_p50": result["delivered_p50_ms"],
        "share_p99": result["delivered_p99_ms"],
        "share_done_p50": result["acknowledged_p50_ms"],
        "share_done_p99": result["acknowledged_p99_ms"],
    }


def memory_after_load(bench: Bench) -> Values:
    return {"memory_loaded": bench.memory_mb()}


def create_many_partitions(bench: Bench) -> None:
    for number in range(MANY_PARTITIONS_TOPICS):
        bench.topic(f"many-{number}", MANY_PARTITIONS_EACH)


def many_partitions(bench: Bench) -> Values:
    """On a server that was just started again with all of them."""
    began = time.monotonic()
    for number in range(MANY_PARTITIONS_TOPICS):
        found = load(bench.server, "leaders", topic=f"many-{number}").result["partitions"]
        assert found == MANY_PARTITIONS_EACH, f"many-{number} has {found} partitions"
    started_s = bench.server.start_s + time.monotonic() - began
    time.sleep(bench.sizes.settle_s)
    before, began = bench.server.usage(), time.monotonic()
    time.sleep(bench.sizes.idle_cpu_s)
    after = bench.server.usage()
    busy_percent = 100 * (after.cpu_s - before.cpu_s) / (time.monotonic() - began)
    return {
        "partitions_start": started_s,
        "partitions_cpu": max(busy_percent, 0.01),
        "partitions_memory": after.rss_bytes / 1e6,
    }


def _rate(measured: Measured) -> float:
    rate: float = measured.result["records_per_s"]
    return rate


def cpu_us(measured: Measured) -> float:
    """Microseconds a record, which is also seconds a million."""
    return measured.server_cpu_s / measured.result["records"] * 1e6


@dataclass(frozen=True)
class Step:
    """`needs` are steps whose topics or whose load this one builds on."""

    run: Callable[[Any], Values]
    """given the `Bench` of its suite"""
    rows: tuple[str, ...]
    needs: tuple[str, ...] = ()


# In the order in which they run on a fresh server.
STEPS = {
    "idle": Step(idle, ("memory_idle",)),
    "connections": Step(connections, ("connections_memory",)),
    "single_first": Step(single_first, ("single_first", "single_first_cpu")),
    "produce_100": Step(produce_100, ("produce_100", "produce_100_cpu")),
    "consume": Step(consume, ("consume", "consume_cpu"), needs=("produce_100",)),
    "produce_100_small": Step(produce_100_small, ("produce_100_small", "produce_100_small_cpu")),
    "produce_1000": Step(produce_1000, ("produce_1000",)),
    "single": Step(single, ("single", "single_cpu")),
    "end_to_end": Step(end_to_end, ("e2e_p50", "e2e_p99", "e2e_p999")),
    "memory": Step(memory_after_load, ("memory_loaded",), needs=("produce_100", "consume", "produce_1000", "single")),
    "transactional": Step(transactional, tuple(row.key for row in TRANSACTION_ROWS)),
    "share": Step(share, tuple(row.key for row in SHARE_ROWS)),
}
NEEDS_A_BROKER = ("transactional", "share")
"""steps that the null server has no answers for"""
PARTITIONS_ROWS = ("partitions_start", "partitions_cpu", "partitions_memory")


def chosen(rows: set[str], steps: Mapping[str, Step]) -> list[str]:
    """Those that fill these rows, with what they build on, in order."""
    wanted = {name for name, step in steps.items() if rows.intersection(step.rows)}
    wanted.update(need for name in tuple(wanted) for need in steps[name].needs)
    return [name for name in steps if name in wanted]
